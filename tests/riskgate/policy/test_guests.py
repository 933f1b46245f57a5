"""Guests may use tools of level guest and send what forms submit, whatever a bundle permits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from phylactery_chassis.auth.identity import Principal, Role, level_of
from phylactery_riskgate.cli.calls import CallFile
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle, single_user_bundle_folder
from phylactery_riskgate.domain.documents import BundleError
from phylactery_riskgate.domain.intent.model import UNSHOWN, FormRun
from phylactery_riskgate.domain.model import Caller, Decision, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import known

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_engine
from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, bundle_of, decide, policy, tool

DELEGATE = Principal("agent", "acme", frozenset({Role.DELEGATE}))
GUEST = Caller("wa:usr_1", "acme", "guest", direct=False)
FOR_GUESTS = {
    "echo",
    "read_output",
    "rehydrate_output",
    "search_output",
    "read_attachment",
    "remember",
    "forget",
    "recall",
    "create_reminder",
    "list_reminders",
    "cancel_reminder",
    "submit_form",
}


def refused(verdict: Verdict) -> bool:
    return verdict.decision is Decision.BLOCKED and [one.code for one in verdict.reasons] == ["NOT_FOR_GUESTS"]


@pytest.mark.parametrize("folder", [default_bundle_folder(), single_user_bundle_folder()], ids=["default", "single"])
def test_the_packaged_bundles_open_reminders_memory_and_talk_to_guests_and_nothing_else(folder: Path) -> None:
    bundle = load_bundle(folder)
    assert {name for name, one in bundle.tools.items() if one.level == "guest"} == FOR_GUESTS


CALLS: dict[str, dict[str, Any]] = {
    "send_email": {"to": "x@other.example", "body": "hello"},
    "http_get": {"url": "http://intranet.example/"},
    "read_file": {"path": "notes.txt"},
    "list_dir": {},
    "search_files": {"pattern": "salary"},
    "write_file": {"path": "a.txt", "content": "x"},
    "file_info": {"path": "a.txt"},
    "send_file": {"path": "a.txt"},
}


@each_case("name", sorted(CALLS))
@each_case("approved", [frozenset(), frozenset({"self", "peer", "dual"})], ids=["unasked", "approved"])
def test_an_employees_tool_is_refused_to_a_guest_even_if_everybody_approved(
    name: str, approved: frozenset[str]
) -> None:
    engine = default_engine()
    assert refused(decide(engine, name, CALLS[name], caller=GUEST, approved=approved))
    assert not refused(decide(engine, name, CALLS[name], approved=approved))


def test_what_guests_may_use_is_decided_by_the_policies() -> None:
    engine = default_engine()
    assert decide(engine, "list_reminders", {}, caller=GUEST).decision is Decision.ALLOW
    assert decide(engine, "cancel_reminder", {"reminder": "r"}, caller=GUEST).decision is Decision.AUTH_REQUIRED


def test_a_bundle_of_before_there_were_guests_opens_nothing_to_them(tmp_path: Path) -> None:
    tools = [tool("read_file"), tool("mcp_crm_lookup"), tool("admin_tool", level="admin")]
    engine = DecisionEngine(bundle_of(tmp_path, tools, ALLOW_ALL))
    for one in ("read_file", "mcp_crm_lookup", "admin_tool"):
        assert refused(decide(engine, one, {}, caller=GUEST))
        assert decide(engine, one, {}).decision is Decision.ALLOW
    assert [one.code for one in decide(engine, "unheard_of", {}, caller=GUEST).reasons] == ["UNKNOWN_TOOL"]


def test_a_tool_of_an_mcp_server_is_opened_by_its_entry_and_closed_by_a_policy(tmp_path: Path) -> None:
    closes = policy(
        "no", 'forbid (principal, action == Action::"mcp_b", resource) when { principal.level == Level::"guest" };'
    )
    tools = [tool("mcp_a", level="guest"), tool("mcp_b", level="guest")]
    engine = DecisionEngine(bundle_of(tmp_path, tools, f"{ALLOW_ALL}\n{closes}"))
    assert decide(engine, "mcp_a", {}, caller=GUEST).decision is Decision.ALLOW
    assert decide(engine, "mcp_b", {}, caller=GUEST).policy_ids == ("no",)
    assert decide(engine, "mcp_b", {}).decision is Decision.ALLOW


def test_the_bundles_list_of_users_lifts_nobody(tmp_path: Path) -> None:
    users = [{"id": "wa:usr_1", "tenant": "acme", "level": "admin"}]
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t")], ALLOW_ALL, entities={"users": users}))
    verdict = decide(engine, "t", {}, caller=GUEST)
    assert refused(verdict)
    assert verdict.facts["level"] == "guest", "recorded with the decision"


def test_guest_is_no_level_that_a_bundle_may_order(tmp_path: Path) -> None:
    settings = {**SETTINGS, "levels": ["guest", "user"]}
    with pytest.raises(BundleError, match="leave it out"):
        bundle_of(tmp_path, [tool("t")], ALLOW_ALL, settings=settings)


def test_what_a_form_submits_is_not_withheld(tmp_path: Path) -> None:
    write = tool("file", {"path": {"type": "string"}, "text": {"type": "string"}}, effect="write")
    bundle = bundle_of(tmp_path, [write], ALLOW_ALL)
    entry = {"form": "report", "tool": "file", "args": {"path": "report.txt", "text": "Day: {day}"}, "class": "self"}
    (tmp_path / "tools.yaml").write_text(json.dumps({"tools": [write], "submissions": [entry]}), encoding="utf-8")
    engine = DecisionEngine(load_bundle(tmp_path))
    assert bundle.tools
    filled = {"path": "report.txt", "text": "Day: monday"}
    served = known(replace(UNSHOWN, form_run=FormRun("report", "1")))
    assert decide(engine, "file", filled, caller=GUEST, task=served).decision is Decision.ALLOW
    assert refused(decide(engine, "file", {**filled, "path": "other.txt"}, caller=GUEST, task=served))
    assert refused(decide(engine, "file", filled, caller=GUEST)), "whoever types or proposes the same is in no form"


@each_case(
    ("user", "withheld"),
    [
        ({"id": "wa:usr_1", "delegated": True}, True),
        ({"id": "tg:77", "tenant": "zeta", "delegated": True}, True),
        ({"id": "bo", "level": "guest", "delegated": True}, True),
        ({"id": "bo", "level": "guest"}, True),
        ({"id": "wa:usr_1", "level": "user", "delegated": True}, False),  # lifted
        ({"id": "bo", "delegated": True}, False),
        ({"id": "wa:usr_1"}, False),  # who has a credential of their own is no person of a channel
        ({}, False),
    ],
)
def test_a_case_and_a_call_in_a_file_know_the_guests_that_riskgate_knows(user: dict[str, Any], withheld: bool) -> None:
    call = CallFile.model_validate({"tool": "list_dir", "user": user})
    caller = call.user.caller()
    engine = default_engine()
    assert refused(decide(engine, "list_dir", {}, caller=caller)) is withheld
    if not caller.direct:
        assert level_of(DELEGATE, caller.subject, user.get("level", "")) == caller.level
