"""`riskgate catalog draft`: entries proposed from tools' own descriptions, which load and hide nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.catalog.drafting.phrases import form
from phylactery_riskgate.domain.catalog.drafting.vocabulary import THINGS, VERBS
from phylactery_riskgate.domain.catalog.outlook import packaged_bundle
from phylactery_riskgate.domain.documents import read_document
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from typer.testing import CliRunner, Result

from tests.support.cases import each_case
from tests.support.riskgate.bundles import ALLOW_ALL, decide, write_bundle

SEND_EMAIL: dict[str, Any] = {
    "name": "send_email",
    "description": "Sends an email to some people.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "recipients": {"type": "array", "items": {"type": "string", "format": "email"}},
            "subject": {"type": "string"},
            "body": {"type": "string"},
            "urgent": {"type": "boolean", "default": False},
        },
        "required": ["recipients", "subject", "body"],
        "additionalProperties": False,
    },
    "outputSchema": {
        "type": "object",
        "properties": {
            "result": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "subject": {"type": "string"},
                        "body": {"type": "string"},
                        "sent_at": {"type": "string", "format": "date-time"},
                        "phone": {"type": "string"},
                        "read": {"type": "boolean"},
                        "price": {"type": "number"},
                        "whatever": {"type": "string"},
                    },
                },
            }
        },
    },
}


def run(*words: object, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["catalog", "draft", *map(str, words)], input=given)


def drafted(*tools: dict[str, Any], words: tuple[str, ...] = ()) -> dict[str, CatalogTool]:
    """What a catalog reads of the entries proposed for a list of tools."""
    result = run("-", *words, given=json.dumps({"tools": list(tools)}))
    assert result.exit_code == 0, result.stderr
    return read_catalog(read_document("tools.yaml", result.stdout), ("user",))


def one(name: str, *, properties: dict[str, Any] | None = None, **more: Any) -> CatalogTool:
    schema = {"type": "object", "properties": properties or {}, "additionalProperties": False}
    return drafted({"name": name, "description": "Does it.", "inputSchema": schema, **more})[name]


# ---- what is proposed -----------------------------------------------------------------------------------------------


def test_a_draft_is_a_bundle_that_policy_check_accepts_and_the_same_every_time(tmp_path: Path) -> None:
    source = tmp_path / "tools.json"
    source.write_text(json.dumps({"tools": [SEND_EMAIL, {**SEND_EMAIL, "name": "delete_file"}]}))
    folder = write_bundle(tmp_path / "bundle", [], ALLOW_ALL)
    texts = [run(source).stdout for _ in range(2)]
    assert texts[0] == texts[1]
    (folder / "tools.yaml").write_text(texts[0])
    checked = CliRunner().invoke(app, ["policy", "check", str(folder), "--json"])
    assert (checked.exit_code, json.loads(checked.stdout)["tools"]) == (0, ["delete_file", "send_email"])


def test_an_entry_says_what_the_tool_is_and_keeps_its_schema_word_for_word() -> None:
    tool = drafted(SEND_EMAIL)["send_email"]
    assert (tool.risk, tool.effect, tool.idempotency) == ("high", "irreversible", "unsafe")
    assert tool.schema == SEND_EMAIL["inputSchema"]
    assert tool.roles == {
        "/recipients": "principal",
        "/subject": "content",
        "/body": "content",
        "/urgent": "content",
    }
    assert (tool.controls, tool.targets, tool.recipients) == (("/recipients",),) * 3
    assert dict(tool.outputs) == {
        "/result/*/id": "system",
        "/result/*/subject": "naming",
        "/result/*/body": "free",
        "/result/*/sent_at": "orderable",
        "/result/*/phone": "private",
        "/result/*/read": "system",
        "/result/*/price": "orderable",
        "/result/*/whatever": "free",
    }
    assert "send * email" in tool.asks.phrases_en
    assert "envía * correo" in tool.asks.phrases_es


def test_what_it_could_not_know_is_marked_where_it_stands() -> None:
    given = json.dumps({"tools": [{"name": "frobnicate", "inputSchema": {"type": "object"}}]})
    checks = {
        field: "; ".join(what)
        for field, what in json.loads(run("-", "--json", given=given).stdout)["tools"][0]["checks"].items()
    }
    assert "says nothing of itself" in checks["description"]
    assert "not in Spanish yet" in checks["description_es"]
    assert "write of high risk" in checks["effect"]
    assert "how do people ask for it in Spanish?" in checks["asks"]
    assert "examples" in checks["asks"]
    assert "no output schema" in checks["output"]
    assert "additionalProperties" in checks["schema"]
    lines = run("-", given=given).stdout.splitlines()
    assert lines.index("    # check: is not in Spanish yet") + 1 == lines.index("    description_es: frobnicate.")


@each_case(
    ("name", "hints", "effect"),
    [
        ("get_user", {}, ("low", "read", "read_only")),
        ("listFiles", {}, ("low", "read", "read_only")),
        ("get_user", {"readOnlyHint": False}, ("high", "write", "unsafe")),
        ("get_user", {"destructiveHint": True}, ("high", "irreversible", "unsafe")),
        ("create_event", {}, ("medium", "write", "unsafe")),
        ("create_event", {"destructiveHint": True}, ("high", "irreversible", "unsafe")),
        ("create_event", {"idempotentHint": True}, ("medium", "write", "unsafe")),
        ("delete_file", {"readOnlyHint": True}, ("high", "irreversible", "unsafe")),
        ("frobnicate", {}, ("high", "write", "unsafe")),
        ("frobnicate", {"readOnlyHint": True}, ("high", "write", "unsafe")),
        ("frobnicate", {"readOnlyHint": "true"}, ("high", "write", "unsafe")),
        ("42", {}, ("high", "write", "unsafe")),
        ("null", {}, ("high", "write", "unsafe")),
    ],
)
def test_effect_and_risk_are_the_worse_ones_in_doubt(
    name: str, hints: dict[str, Any], effect: tuple[str, str, str]
) -> None:
    tool = one(name, annotations=hints)
    assert (tool.risk, tool.effect, tool.idempotency) == effect


@each_case(
    ("argument", "part", "role"),
    [
        ("to", {"type": "string"}, "principal"),
        ("iban", {"type": "string"}, "principal"),
        ("who", {"type": "string", "format": "email"}, "principal"),
        ("userId", {"type": "string"}, "principal"),
        ("amount", {"type": "number"}, "amount"),
        ("total_price", {"type": "string"}, "amount"),
        ("link", {"type": "string"}, "url"),
        ("where", {"type": "string", "format": "uri"}, "url"),
        ("new_password", {"type": "string"}, "secret"),
        ("page_token", {"type": "string"}, "content"),
        ("start_time", {"type": "string"}, "date"),
        ("due", {"type": "string", "format": "date-time"}, "date"),
        ("body", {"type": "string"}, "content"),
        ("email_id", {"type": "string"}, "object"),
        ("file_path", {"type": "string"}, "object"),
        ("limit", {"type": "integer"}, "amount"),
        ("silently", {"type": "boolean"}, "content"),
        ("mode", {"enum": ["a", "b"]}, "content"),
        ("xyzzy", {"type": "string"}, "object"),
        ("attachments", {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}, "object"),
    ],
)
def test_an_arguments_role_is_read_from_its_name_its_type_and_its_format(
    argument: str, part: dict[str, Any], role: str
) -> None:
    tool = one("send_thing", properties={argument: part})
    assert tool.roles == {f"/{argument}": role}
    assert bool(tool.controls) == (role in {"principal", "amount", "url", "secret", "object"})


def test_a_title_names_what_is_deleted_and_is_only_said_of_what_is_made() -> None:
    title = {"title": {"type": "string"}}
    assert one("delete_event", properties=title).roles == {"/title": "object"}
    assert one("create_event", properties=title).roles == {"/title": "content"}


def test_arguments_within_arguments_have_roles_of_their_own_and_odd_names_are_escaped() -> None:
    inner = {"type": "object", "properties": {"amount": {"type": "number"}, "a/b~c": {"type": "string"}}}
    tool = one("update_thing", properties={"details": inner})
    assert tool.roles == {"/details/amount": "amount", "/details/a~1b~0c": "object"}


def test_no_phrase_is_heard_as_another_of_the_same_tool() -> None:
    asks = one("delete_files").asks
    for phrases in (asks.phrases_en, asks.phrases_es):
        assert len({form(phrase) for phrase in phrases}) == len(phrases) > 0


def test_phrases_that_differ_in_a_small_word_are_both_kept() -> None:
    known = {"asks": {"phrases": {"en": ["write * to", "write * in", "Write * in", "write"]}}}
    tool = drafted({**SEND_EMAIL, "catalog": known}, words=("--from-agent",))["send_email"]
    assert tool.asks.phrases_en == ("write * to", "write * in", "write")


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("append_to_file", "append * file", "append"),
        ("purge_logs", "purge * log", "purge"),
        ("decline_invitation", "decline * invitation", "accept * invitation"),
        ("calendar.createEvent", "create * event", "create * calendar"),
        ("send_money", "pay", "reply * money"),
    ],
)
def test_phrases_are_made_of_a_names_verb_and_what_it_acts_upon(name: str, said: str, unsaid: str) -> None:
    phrases = one(name).asks.phrases_en
    assert said in phrases
    assert unsaid not in phrases


def test_a_change_with_an_amount_for_somebody_or_a_secret_is_of_high_risk() -> None:
    somebody, amount = {"recipient": {"type": "string"}}, {"amount": {"type": "number"}}
    assert one("schedule_transaction", properties={**somebody, **amount}).risk == "high"
    assert one("schedule_transaction", properties=somebody).risk == "medium"
    assert one("update_user", properties={"password": {"type": "string"}}).risk == "high"
    assert one("get_transactions", properties={**somebody, **amount}).risk == "low"


def test_what_has_no_known_spanish_name_is_called_as_the_tool_calls_it_and_marked() -> None:
    given = json.dumps([{"name": "delete_frobnication", "inputSchema": {"type": "object"}}])
    result = run("-", given=given)
    assert "borra * frobnication" in result.stdout
    assert "# check: phrases.es: do people call it so in Spanish? frobnication" in result.stdout
    assert one("frobnicate_frobnication").asks.phrases_es == ()


def test_the_vocabulary_says_everything_in_both_languages() -> None:
    assert all(verb.en and all(verb.en) and verb.es and all(verb.es) for verb in VERBS.values())
    assert all(all(en) and all(es) for en, es in THINGS.values())


# ---- where it comes from --------------------------------------------------------------------------------------------


def test_one_json_schema_needs_a_name_and_takes_a_description(tmp_path: Path) -> None:
    source = tmp_path / "schema.json"
    source.write_text(json.dumps(SEND_EMAIL["inputSchema"]))
    result = run(source)
    assert (result.exit_code, "--name" in result.stderr) == (2, True)
    result = run(source, "--name", "send_email", "--description", "Sends it.")
    (tool,) = read_catalog(read_document("tools.yaml", result.stdout), ("user",)).values()
    assert (tool.name, tool.description, tool.schema) == ("send_email", "Sends it.", SEND_EMAIL["inputSchema"])
    assert run(source, "--name", "no spaces").exit_code == 2


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tool: tool,
        lambda tool: [tool],
        lambda tool: {"tools": [tool]},
        lambda tool: {"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}},
        lambda tool: [{"type": "function", "function": {"name": tool["name"], "parameters": tool["inputSchema"]}}],
    ],
)
def test_a_list_of_tools_is_read_in_its_usual_forms(wrap: Any) -> None:
    result = run("-", given=json.dumps(wrap(SEND_EMAIL)))
    assert list(read_catalog(read_document("tools.yaml", result.stdout), ("user",))) == ["send_email"]


def test_what_a_list_says_for_the_catalog_is_believed_only_of_the_agents_own_export() -> None:
    known = {
        "risk": "low",
        "effect": "read",
        "idempotency": "read_only",
        "timeout_seconds": 5,
        "controls": [],
        "description_es": "Envía un correo.",
        "asks": {"phrases": {"en": ["drop a line"]}, "examples": {"es": ["Mándale un correo a Ana"]}},
    }
    tool = {**SEND_EMAIL, "catalog": known}
    assert drafted(tool)["send_email"].effect == "irreversible"
    believed = drafted(tool, words=("--from-agent",))["send_email"]
    assert (believed.risk, believed.effect, believed.timeout_seconds, believed.controls) == ("low", "read", 5, ())
    assert believed.asks.phrases_en == ("drop a line",)
    assert believed.asks.examples_es == ("Mándale un correo a Ana",)
    assert believed.description_es == "Envía un correo."


@pytest.mark.parametrize(
    ("name", "description", "proposed"),
    [
        ("unlock_door", "Unlocks a door.", {"reach: people", "guards: true"}),
        ("publish_post", "Publishes a post.", {"reach: public"}),
        ("pay_bill", "Pays a bill.", {"reach: people", "spends: true"}),
        ("delete_page", "Deletes a page.", {"reach: shared", "destroys: true"}),
        ("set_thing", "Sets a thing.", {"reach: shared"}),
        ("add_note", "Adds a note.", {"reach: own"}),
        ("add_note", "Adds a note and emails it to the team.", {"reach: people"}),
    ],
)
def test_a_draft_proposes_what_the_tool_can_do_in_comments_and_never_low_stakes(tmp_path, name, description, proposed):
    schema = {"type": "object", "properties": {"it": {"type": "string"}}, "additionalProperties": False}
    given = json.dumps({"tools": [{"name": name, "description": description, "inputSchema": schema}]})
    text = run("-", given=given).stdout
    comments = {
        line.strip().removeprefix("# check: ") for line in text.splitlines() if line.strip().startswith("# check")
    }
    assert proposed <= comments
    assert not {"reach", "undo", "spends", "destroys", "guards", "reviewed"} & {*yaml.safe_load(text)["tools"][0]}
    engine = DecisionEngine(packaged_bundle(text))
    assert decide(engine, name, {"it": "x"}).stakes in {"unspecified", "high"}


@pytest.mark.parametrize("hint", [{"destructiveHint": True}, {"destructiveHint": False, "readOnlyHint": True}])
def test_annotations_only_add_to_what_is_proposed(hint):
    schema = {"type": "object", "properties": {"it": {"type": "string"}}}
    tools = [{"name": "delete_page", "description": "Deletes a page.", "inputSchema": schema, "annotations": hint}]
    assert "# check: destroys: true" in run("-", given=json.dumps({"tools": tools})).stdout


@each_case(
    ("argument", "description"),
    [
        *(("amount_cents", ""), ("amountCents", ""), ("price_minor", ""), ("monto_centavos", ""), ("centavos", "")),
        *(("amount_centimos", ""), ("amount", "The amount in cents."), ("total", "In the minor unit of the currency.")),
    ],
)
def test_what_is_perhaps_in_hundredths_is_of_an_unknown_unit_and_says_so(argument: str, description: str) -> None:
    properties = {"to": {"type": "string"}, argument: {"type": "integer", "description": description}}
    listed = json.dumps({"tools": [{"name": "pay", "inputSchema": {"type": "object", "properties": properties}}]})
    text = run("-", given=listed).stdout
    entry = yaml.safe_load(text)["tools"][0]
    assert entry["amount"] == {"pointer": f"/{argument}", "unit": "unknown"}
    assert "# check: unit: cents if 2000 is 20.00" in text.partition("amount:")[0]
    assert one("pay", properties=properties).amount_unit == "unknown"


@pytest.mark.parametrize("argument", ["amount", "total_price", "percent_amount", "amount_recent"])
def test_what_does_not_speak_of_hundredths_is_in_whole_units(argument: str) -> None:
    assert one("pay", properties={argument: {"type": "number"}}).amount_unit == "whole"
