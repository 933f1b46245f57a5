"""What `riskgate catalog draft` classifies as a read: never a tool that changes something, whatever its name says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.documents import read_document
from phylactery_riskgate.domain.model import CatalogTool
from typer.testing import CliRunner

from tests.support.cases import each_case

HOSTILE: dict[str, str] = {
    "GmailReadEmail": "List, access, create, update, and delete messages in a mailbox.",
    "TodoistManageTasks": "Show and manage tasks.",
    "AdminUserRemover": "Get rid of a user for good.",
    "get_rid_of_user": "Get a user out of the directory.",
    "get_user": "Gets a user. Deletes it afterwards.",
    "fetch_invoice": "Fetches an invoice and pays it.",
    "list_or_purge_logs": "Lists logs.",
    "search_flights": "Search and book flights.",
    "view_document": "View a document; the document is removed from the server once viewed.",
    "find_and_replace": "Finds text.",
    "read_queue": "Read the next message of a queue. Also removes it.",
    "lookup_customer": "Look up a customer, then email them a survey.",
    "check_in_passenger": "Check a passenger.",
    "query_database": "Query the database.",
    "show_account": "Muestra una cuenta y la elimina.",
    "count_items": "Counts items and\nwill wipe them.",
    "frobnicate": "Reads a value. It is read-only, safe and changes nothing at all.",
    "describe_instances": "Describe or terminate instances.",
    "fetch": "Fetches a URL.",
    "get_messages": "Get the messages of a chat.",
    "get_user_deleted": "Gets it done.",
    "get_orders_cancelled": "Gets it done.",
    "display_alert": "Displays an alert on every screen.",
    "read_profile": "Löscht ein Profil.",
    "list_accounts": "Supprime les comptes.",
}
HOSTILE_SCHEMAS: dict[str, dict[str, Any]] = {
    "query_database": {"sql": {"type": "string"}},
    "fetch": {"url": {"type": "string"}, "method": {"type": "string"}, "body": {"type": "string"}},
    "get_messages": {"chat": {"type": "string"}, "delete_after_reading": {"type": "boolean"}},
}

USUAL: list[tuple[str, str, str, str]] = [
    ("read_file", "Read the complete contents of a file from the file system.", "path", "read"),
    ("read_multiple_files", "Read the contents of multiple files simultaneously.", "paths", "read"),
    (
        "write_file",
        "Create a new file or completely overwrite an existing file with new content.",
        "path content",
        "write",
    ),
    ("edit_file", "Make line-based edits to a text file.", "path edits", "write"),
    ("create_directory", "Create a new directory or ensure a directory exists.", "path", "write"),
    ("list_directory", "Get a detailed listing of all files and directories in a path.", "path", "read"),
    ("list_allowed_directories", "Returns the list of directories that this server may use.", "", "read"),
    ("move_file", "Move or rename files and directories.", "source destination", "write"),
    ("search_files", "Recursively search for files and directories matching a pattern.", "path pattern", "read"),
    ("get_file_info", "Retrieve detailed metadata about a file or directory.", "path", "read"),
    ("create_or_update_file", "Create or update a single file in a repository.", "owner repo path content", "write"),
    ("search_repositories", "Search for repositories.", "query page perPage", "read"),
    ("push_files", "Push multiple files in a single commit.", "owner repo branch message", "write"),
    ("list_commits", "Get list of commits of a branch in a repository.", "owner repo sha page", "read"),
    ("get_pull_request", "Get details of a specific pull request.", "owner repo pull_number", "read"),
    ("list_merge_requests", "List merge requests in a project.", "project_id state", "read"),
    ("merge_pull_request", "Merge a pull request.", "owner repo pull_number", "write"),
    ("add_issue_comment", "Add a comment to an existing issue.", "owner repo issue_number body", "write"),
    ("slack_list_channels", "List public channels in the workspace with pagination.", "limit cursor", "read"),
    ("slack_post_message", "Post a new message to a channel.", "channel_id text", "write"),
    ("slack_add_reaction", "Add a reaction emoji to a message.", "channel_id timestamp reaction", "write"),
    ("slack_get_channel_history", "Get recent messages from a channel.", "channel_id limit", "read"),
    ("brave_web_search", "Performs a web search, ideal for general queries.", "query count offset", "read"),
    ("getUserByID", "Get a user by their id.", "userId", "read"),
    ("get_order", "Get one order with its status.", "order_id", "read"),
    ("rm", "Remove a file.", "path", "write"),
    ("ls", "List files.", "path", "read"),
    ("view_messages_sent", "View all messages of the current user.", "", "read"),
    ("mkdir", "Make a directory.", "path", "write"),
    ("API-post-page", "Create a page.", "parent properties", "write"),
    ("get_workflow_run", "Get details of a specific workflow run.", "run_id", "read"),
    ("confluence_get_page_children", "Get child pages of a specific page.", "parent_id", "read"),
    ("git_log", "Shows the commit logs.", "repo_path max_count", "read"),
    ("puppeteer_navigate", "Navigate to a URL.", "url", "write"),
]
"""Names and schemas as widespread MCP servers have them; the last word is read, or write for everything else."""


def drafted(*tools: dict[str, Any], words: tuple[str, ...] = ()) -> dict[str, CatalogTool]:
    """What a catalog reads of the entries proposed for a list of tools."""
    result = CliRunner().invoke(app, ["catalog", "draft", "-", *words], input=json.dumps({"tools": list(tools)}))
    assert result.exit_code == 0, result.stderr
    return read_catalog(read_document("tools.yaml", result.stdout), ("user",))


def described(name: str, description: str, properties: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties or {}, "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema, **more}


def texts(names: str) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names.split()}


@each_case("name", HOSTILE)
def test_no_description_makes_a_read_and_each_can_stop_one(name: str) -> None:
    tool = drafted(described(name, HOSTILE[name], HOSTILE_SCHEMAS.get(name)))[name]
    assert (tool.effect != "read", tool.effectless, tool.risk) == (True, False, "high")


@each_case("name", HOSTILE)
def test_a_request_for_reading_does_not_ask_for_a_tool_that_only_pretends_to_read(name: str) -> None:
    tool = drafted(described(name, HOSTILE[name], HOSTILE_SCHEMAS.get(name)))[name]
    reading = ("get *", "list *", "read *", "show me *", "view *", "find *", "search *", "dame *", "muestra *")
    assert not [one for one in (*tool.asks.phrases_en, *tool.asks.phrases_es) if one.startswith(reading)]


@each_case(("name", "description", "arguments", "effect"), USUAL, ids=[one[0] for one in USUAL])
def test_the_tools_of_usual_servers_are_what_they_are(name: str, description: str, arguments: str, effect: str) -> None:
    tool = drafted(described(name, description, texts(arguments)))[name]
    assert ("read" if tool.effect == "read" else "write") == effect


@each_case(("name", "description", "arguments", "effect"), USUAL, ids=[one[0] for one in USUAL])
def test_the_usual_writes_come_with_a_verb_and_its_noun_in_both_languages(
    name: str, description: str, arguments: str, effect: str
) -> None:
    asks = drafted(described(name, description, texts(arguments)))[name].asks
    if effect == "write" and name != "puppeteer_navigate":
        assert any(" * " in one for one in asks.phrases_en)
        assert any(" * " in one for one in asks.phrases_es)


@pytest.mark.parametrize(
    ("hints", "plain", "trusted"),
    [
        ({"readOnlyHint": True}, ("high", "write", "unsafe"), ("low", "read", "read_only")),
        ({"idempotentHint": True}, ("high", "write", "unsafe"), ("high", "write", "idempotent_by_key")),
        ({"destructiveHint": True}, ("high", "irreversible", "unsafe"), ("high", "irreversible", "unsafe")),
        ({"readOnlyHint": "true"}, ("high", "write", "unsafe"), ("high", "write", "unsafe")),
    ],
)
def test_annotations_make_a_tool_laxer_only_where_the_server_is_trusted(
    hints: dict[str, Any], plain: tuple[str, str, str], trusted: tuple[str, str, str]
) -> None:
    source = described("frobnicate", "Does it.", annotations=hints)
    for words, said in (((), plain), (("--trust-annotations",), trusted)):
        tool = drafted(source, words=words)["frobnicate"]
        assert (tool.risk, tool.effect, tool.idempotency) == said


def test_what_a_trusted_server_says_is_not_destroyed_is_a_write() -> None:
    source = described("delete_file", "Deletes a file.", annotations={"destructiveHint": False})
    assert drafted(source)["delete_file"].effect == "irreversible"
    assert drafted(source, words=("--trust-annotations",))["delete_file"].effect == "write"


def test_a_read_that_twice_does_more_than_once_is_not_run_again() -> None:
    source = described("get_next", "Gets the next.", annotations={"idempotentHint": False})
    assert drafted(source)["get_next"].idempotency == "unsafe"


@each_case(
    ("tool", "effectless"),
    [
        (described("think", "Use the tool to think about something.", texts("thought")), True),
        (described("noop", "Does nothing."), True),
        (described("sequentialthinking", "Thinks.", {"thought_number": {"type": "integer"}}), True),
        (described("finish", "Finish the conversation.", texts("answer_text")), True),
        (described("mean", "The mean of a list.", {"of": {"type": "array", "items": {"type": "number"}}}), True),
        (described("divide", "Divide a by b.", {"a": {"type": "number"}, "b": {"type": "number"}}), True),
        (described("divide", "Divide an account.", texts("account_id")), False),
        (described("mean", "The mean.", texts("account_id")), False),
        (described("average", "The average.", {"of": {"type": "number"}, "note": {"type": "string"}}), False),
        (described("think_hard", "Use the tool to think about something.", texts("thought")), False),
        (described("ponder", "This tool has no effect; it only thinks.", texts("thought")), False),
        (described("finish", "Finish an order.", texts("order_id")), False),
        (described("think", "Thinks, and deletes what was thought.", texts("thought")), False),
        (described("think", "Thinks.", texts("thought"), annotations={"readOnlyHint": False}), False),
    ],
)
def test_no_effect_is_drafted_for_a_closed_list_of_names_alone(tool: dict[str, Any], effectless: bool) -> None:
    drafts = drafted(tool)[tool["name"]]
    assert (drafts.effectless, drafts.effect == "read") == (effectless, effectless)


@each_case(
    ("name", "said"),
    [
        ("rm", ("delete * file", "borra * archivo")),
        ("mv", ("move * file", "mueve * archivo")),
        ("fs_mkdir", ("create * directory", "crea * carpeta")),
        ("touch", ("create * file", "crea * archivo")),
        ("comment_issue", ("comment * issue", "comenta * incidencia")),
        ("closeTicket", ("close * ticket", "cierra * tique")),
        ("scale_service", ("scale * service", "escala * servicio")),
        ("upgrade_plan", ("upgrade * plan", "mejora * plan")),
        ("add_to_cart", ("buy", "compra")),
        ("checkout_cart", ("buy", "compra")),
        ("confirm_booking", ("book * flight", "reserva * vuelo")),
        ("book_reservation", ("book * flight", "reserva * vuelo")),
        ("place_order", ("buy", "haz * pedido")),
        ("git_checkout", ("change * branch", "cambia * rama")),
        ("delete_frobnication", ("delete * frobnication", "borra * frobnication")),
    ],
)
def test_phrases_are_said_in_both_languages(name: str, said: tuple[str, str]) -> None:
    asks = drafted(described(name, "Does it."))[name].asks
    assert (said[0] in asks.phrases_en, said[1] in asks.phrases_es) == (True, True)


@pytest.mark.parametrize(
    ("name", "description", "said"),
    [
        ("deploy", "Deploy a version of a service.", ("deploy * version", "despliega * servicio")),
        ("refund", "Refund an order, wholly or in part.", ("refund * order", "reembolsa * pedido")),
        ("invite", "Invite somebody to an event.", ("invite * meeting", "invita * reunión")),
        ("frobnicate", "Delete a calendar event.", ("delete * event", "borra * evento")),
    ],
)
def test_a_description_adds_what_a_name_leaves_open(name: str, description: str, said: tuple[str, str]) -> None:
    asks = drafted(described(name, description))[name].asks
    assert (said[0] in asks.phrases_en, said[1] in asks.phrases_es) == (True, True)


def test_a_tool_called_by_its_verb_alone_is_heard_by_it_and_by_no_verb_of_other_tools() -> None:
    phrases = drafted(described("transfer", "Transfer money to an account."))["transfer"].asks.phrases_en
    assert {"transfer", "wire", "transfer * money"} <= set(phrases)
    assert "send" not in phrases


def test_a_description_adds_no_verb_that_does_less_than_the_tool() -> None:
    asks = drafted(described("delete_calendar", "Create an event."))["delete_calendar"].asks
    assert "delete * calendar" in asks.phrases_en
    assert not [one for one in asks.phrases_en if one.startswith("create")]


@pytest.mark.parametrize(
    ("name", "description", "unsaid"),
    [
        ("reserve_hotel", "Makes a reservation for a hotel.", "book * flight"),
        ("transfer_to_human_agents", "Transfer the user to a human agent.", "pay"),
        ("stop_service", "Stop a service.", "para * servicio"),
    ],
)
def test_a_request_for_another_thing_does_not_ask_for_it(name: str, description: str, unsaid: str) -> None:
    asks = drafted(described(name, description))[name].asks
    assert unsaid not in (*asks.phrases_en, *asks.phrases_es)


def test_what_a_name_says_stays_where_a_description_says_it_destroys() -> None:
    tool = drafted(described("update_user", "Deletes the user."))["update_user"]
    assert (tool.effect, tool.risk) == ("irreversible", "high")


@each_case(
    ("name", "arguments", "roles"),
    [
        ("deploy", {"environment": {"enum": ["dev", "production"]}, "service": {}}, "object object"),
        ("set_config", {"service": {}, "key": {}, "value": {}}, "object object object"),
        ("set_limit", {"value": {"type": "number"}}, "amount"),
        ("transfer", {"to_account": {}, "amount": {"type": "number"}, "concept": {}}, "principal amount content"),
        ("create_channel", {"name": {}, "topic": {}, "members": {}}, "content content principal"),
        ("cancel_order", {"order_id": {}, "reason": {}}, "object content"),
        ("move_thing", {"page_id": {}, "filter_id": {}, "order_number": {}}, "object object object"),
        ("scale_service", {"replicas": {"type": "integer"}, "quantity": {"type": "integer"}}, "amount amount"),
        ("book_table", {"guests": {"type": "integer"}, "number_of_rooms": {"type": "integer"}}, "amount amount"),
        ("update_issue", {"number": {"type": "integer"}, "title": {}, "labels": {}}, "object content content"),
        ("delete_event", {"title": {}}, "object"),
        ("delete_messages", {"filter": {}, "query": {}, "pattern": {}}, "object object object"),
        ("list_things", {"filter": {}, "query": {}, "page_token": {}, "order": {}}, "content content content content"),
        ("create_payment", {"currency": {"enum": ["EUR"]}, "currency_code": {"enum": ["EUR"]}}, "content content"),
        ("send_thing", {"api_key": {}, "next_token": {}, "sku": {}}, "secret content object"),
        ("list_events", {"from": {}, "to": {}}, "content content"),
        ("move_file", {"from": {}, "to": {}}, "object object"),
        ("grant_access", {"role": {"enum": ["admin"]}, "email": {}}, "principal principal"),
        ("create_branch", {"branch_name": {}, "repo_name": {}}, "content object"),
        ("switch_branch", {"repo_path": {}, "branch_name": {}, "new_name": {}}, "object object content"),
        ("create_refund", {"payment_intent": {}, "amount_eur": {"type": "number"}}, "object amount"),
        ("create_thing", {"xyzzy": {}}, "object"),
    ],
)
def test_what_an_argument_decides_is_read_from_its_name(name: str, arguments: dict[str, Any], roles: str) -> None:
    properties = {one: part if "enum" in part else {"type": "string", **part} for one, part in arguments.items()}
    tool = drafted(described(name, "Does it.", properties))[name]
    assert list(tool.roles.values()) == roles.split()
    assert [one for one in tool.roles if tool.roles[one] not in {"content", "date"}] == list(tool.controls)
