"""EvaluateAccess: AuthZEN's vectors, who may ask about whom, and that it only yields a recorded answer."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from phylactery.riskgate.v1 import access_pb2
from phylactery_client import AccessQuestion, RiskGateClient
from phylactery_riskgate.decisions.access import arguments_of
from phylactery_riskgate.decisions.requests import QuestionInput

from tests.riskgate.audit.test_service import listed
from tests.riskgate.bundles.test_activation import activate

ROOT = Path(__file__).resolve().parents[3]
BUNDLE = ROOT / "examples" / "authzen" / "bundle"
VECTORS = json.loads((Path(__file__).parents[1] / "data" / "authzen-todo-decisions-1_0-02.json").read_text())
"""The decisions of the OpenID AuthZEN interop scenario "Todo" for the Authorization API 1.0, draft 02, unchanged."""

RICK, MORTY, BETH = (f"CiRmZD{c}2MTRkMy1jMzlhLTQ3ODEtYjdiZC04Yjk2ZjVhNTEwMGQSBWxvY2Fs" for c in "AEM")
GRPCURL = shutil.which("grpcurl", path=f"{os.environ['PATH']}{os.pathsep}{Path.home() / 'go' / 'bin'}")


@pytest.fixture
async def gate(make_gate):
    return await make_gate(bundle=BUNDLE)


@pytest.fixture
def ask(gate):
    """Ask in AuthZEN's JSON and return in it."""

    async def run(request: dict[str, Any], person: Any = None) -> dict[str, Any]:
        asker = person or gate.person("pep")
        message = json_format.ParseDict(request, access_pb2.EvaluateAccessRequest())
        answer = await asker.decisions.EvaluateAccess(message, metadata=asker.metadata, timeout=60)
        return json_format.MessageToDict(answer)

    return run


def question(action: str = "can_read_todos", subject: str = RICK, **resource: Any) -> dict[str, Any]:
    return {
        "subject": {"type": "user", "id": subject},
        "action": {"name": action},
        "resource": {"type": "todo", "id": "one", **resource},
    }


OWNED_BY_MORTY = {"properties": {"ownerID": "morty@the-citadel.com"}}


@pytest.mark.parametrize("vector", VECTORS["evaluation"], ids=lambda one: one["request"]["action"]["name"])
async def test_every_evaluation_of_the_interop_scenario_gets_its_decision(ask, vector):
    assert (await ask(vector["request"]))["decision"] is vector["expected"]


@pytest.mark.parametrize("vector", VECTORS["evaluations"])
async def test_every_batch_of_the_interop_scenario_gets_its_decisions(ask, vector):
    answer = await ask(vector["request"])
    assert [{"decision": one["decision"]} for one in answer["evaluations"]] == vector["expected"]
    assert "decision" not in answer


def test_the_vectors_are_all_there():
    assert {name: len(found) for name, found in VECTORS.items()} == {"evaluation": 40, "evaluations": 3}


@pytest.mark.parametrize(
    ("semantic", "expected"),
    [
        ("", [False, True, False, True]),
        ("execute_all", [False, True, False, True]),
        ("deny_on_first_deny", [False]),
        ("permit_on_first_permit", [False, True]),
    ],
)
async def test_a_batch_ends_where_its_semantic_says_and_records_what_it_answered(gate, ask, semantic, expected):
    subjects = [{"subject": {"type": "user", "id": one}} for one in (BETH, MORTY, BETH, MORTY)]
    options = {"options": {"evaluations_semantic": semantic}} if semantic else {}
    answer = await ask(question("can_create_todo") | {"evaluations": subjects} | options)
    assert [one["decision"] for one in answer["evaluations"]] == expected
    records = gate.records("access_evaluated")
    assert [one["decision"] == "ALLOW" for one in records] == expected
    assert [one["evaluation_id"] for one in records] == [one["context"]["id"] for one in answer["evaluations"]]


async def test_an_evaluation_is_recorded_with_who_asked_about_whom_and_its_values_sealed(gate, ask):
    answer = await ask(question("can_update_todo", MORTY, id="a-todo-of-his", **OWNED_BY_MORTY))
    (record,) = gate.records("access_evaluated")
    assert (record["actor"], record["subject"], record["tenant"]) == ("pep", MORTY, "local")
    assert (record["tool"], record["decision"], record["policy_ids"]) == ("can_update_todo", "ALLOW", ["todo.own"])
    assert record["evaluation_id"] == answer["context"]["evaluation_id"] == answer["context"]["id"]
    assert set(record["values"]) == {"/arguments/resource", "/args_hash"}
    assert "a-todo-of-his" not in json.dumps(record)
    assert answer["context"]["reason_user"].keys() == {"en", "es"}
    assert "todo.own" in answer["context"]["reason_admin"]["en"]
    assert answer["context"]["reason"] == "POLICY_PERMIT"


async def test_what_needs_a_person_is_denied_and_says_that_and_until_when_one_could_be_asked(gate, ask):
    answer = await ask(question("can_delete_list", type="list"))
    assert answer["decision"] is False
    context = answer["context"]
    assert context["reason"] == "APPROVAL_REQUIRED"
    hint = context["access_request"]
    assert hint["template"] == "peer"
    assert hint["expires_at"] > context["evaluated_at"]
    assert hint["display"]["title"]
    assert gate.count("approvals") == 0, "a question asks nobody"
    assert "access_request" not in (await ask(question("can_delete_list", BETH, type="list")))["context"]


async def test_no_permit_no_approval_and_no_decision_to_come_back_to_is_made(gate, ask):
    for _ in range(3):
        assert (await ask(question()))["decision"] is True
    assert {table: gate.count(table) for table in ("decisions", "approvals", "redemptions")} == {
        "decisions": 0,
        "approvals": 0,
        "redemptions": 0,
    }
    fields = {
        field.name for message in access_pb2.DESCRIPTOR.message_types_by_name.values() for field in message.fields
    }
    assert not {"permit", "approval", "approval_id", "code", "receipt"} & fields


async def test_who_asks_about_whom(gate, ask, refused, call):
    about_self = question(subject="zed", type="todo")
    zed = gate.through_agent("zed", "local")
    assert (await ask(about_self, zed))["decision"] is True
    for person, subject in (
        (gate.person("ana"), RICK),
        (gate.person("dora"), "dora"),
        (gate.through_agent("zed", "local"), RICK),
        (gate.through_agent("zed", "local"), "agent"),
    ):
        refusal = await refused(ask(question(subject=subject), person))
        assert (refusal.code.name, refusal.reason, refusal.metadata) == (
            "PERMISSION_DENIED",
            "ROLE_REQUIRED",
            {"role": "delegate"},
        )
    assert [record["subject"] for record in gate.records("access_evaluated")] == ["zed"]


async def test_one_subject_too_many_refuses_the_whole_batch_and_records_none_of_it(gate, ask, refused):
    zed = gate.through_agent("zed", "local")
    batch = question(subject="zed") | {"evaluations": [{}, {"subject": {"type": "user", "id": RICK}}]}
    assert (await refused(ask(batch, zed))).reason == "ROLE_REQUIRED"
    assert gate.records("access_evaluated") == []


async def test_a_delegate_of_another_tenant_finds_none_of_this_tenants_users(make_gate, ask, gate):
    rick_elsewhere = gate.through_agent(RICK, "acme")
    assert (await ask(question("can_create_todo"), gate.person("pep")))["decision"] is True
    assert (await ask(question("can_create_todo"), rick_elsewhere))["decision"] is False


async def test_the_subjects_level_and_roles_come_from_the_bundle_never_from_the_question(gate, ask):
    claim = {"subject": {"type": "user", "id": BETH, "properties": {"groups": ["admin"], "level": "system"}}}
    answer = await ask(question("can_create_todo") | claim)
    assert (answer["decision"], answer["context"]["reason"]) == (False, "SCHEMA_VIOLATION")
    assert (await ask(question("can_create_todo", BETH)))["context"]["reason"] == "POLICY_NO_PERMIT"


@pytest.mark.parametrize("kind", ["service", "group", "User", "user "])
async def test_a_subject_that_is_no_user_is_denied_and_recorded(gate, ask, kind):
    answer = await ask(question() | {"subject": {"type": kind, "id": RICK}})
    assert (answer["decision"], answer["context"]["reason"]) == (False, "SUBJECT_NOT_A_USER")
    (record,) = gate.records("access_evaluated")
    assert (record["subject_type"], record["decision"]) == (kind, "BLOCKED")


async def test_what_the_catalog_does_not_know_is_denied_whole(ask):
    unknown = await ask(question("can_fly"))
    assert (unknown["decision"], unknown["context"]["reason"]) == (False, "UNKNOWN_TOOL")
    for extra in (
        {"context": {"time": "now"}},
        {"action": {"name": "can_read_todos", "properties": {"soft": True}}},
        {"resource": {"type": "todo", "id": "one", "properties": {"__entity": {"type": "User", "id": "x"}}}},
        {"resource": {"type": "user", "id": "one"}},
    ):
        answer = await ask(question() | extra)
        assert answer["decision"] is False, extra
        assert answer["context"]["reason"] in {"SCHEMA_VIOLATION", "RESERVED_KEY"}


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({}, "subject"),
        ({"subject": {"type": "user", "id": "a b"}}, "subject.id"),
        ({"subject": {"type": "user"}}, "subject.id"),
        ({"action": {"name": "x y"}}, "action.name"),
        ({"resource": {"type": "", "id": "1"}}, "resource.type"),
        ({"resource": {"type": "t", "id": "1\n"}}, "resource.id"),
    ],
)
async def test_a_question_without_a_part_it_needs_names_the_part(gate, ask, refused, request_, field):
    whole = question() | request_ if request_ else {}
    refusal = await refused(ask(whole))
    assert refusal.reason == "INVALID_REQUEST"
    assert field in refusal.fields
    assert gate.records() == []


async def test_a_batch_is_bounded_and_says_which_of_it_is_wrong(ask, refused):
    many = question() | {"evaluations": [{}] * 101}
    assert (await refused(ask(many))).fields == ["evaluations"]
    bad = question() | {"evaluations": [{}, {"subject": {"type": "user", "id": ""}}]}
    assert (await refused(ask(bad))).fields == ["evaluations.1.subject.id"]
    odd = question() | {"evaluations": [{}], "options": {"evaluations_semantic": "maybe"}}
    assert (await refused(ask(odd))).fields == ["evaluations_semantic"]
    alone = {name: part for name, part in question().items() if name != "action"}
    assert (await refused(ask(alone | {"evaluations": [{}]}))).fields == ["evaluations.0.action"]


async def test_without_a_record_there_is_no_answer(gate, ask, refused):
    gate.fail_writes()
    refusal = await refused(ask(question()))
    assert (refusal.code.name, refusal.reason) == ("UNAVAILABLE", "STORE_UNAVAILABLE")


async def test_the_default_bundle_denies_by_default(make_gate):
    gate = await make_gate("other")
    person = gate.person("pep")
    message = json_format.ParseDict(question("read_file"), access_pb2.EvaluateAccessRequest())
    answer = await person.decisions.EvaluateAccess(message, metadata=person.metadata, timeout=60)
    assert (answer.decision, answer.context.reason) == (False, "SCHEMA_VIOLATION")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3), st.sampled_from(["subject", "action", "resource"])
)
def test_no_part_of_a_question_is_lost_and_none_takes_anothers_place(properties, part):
    parts = question()
    parts[part] |= {"properties": properties}
    arguments = arguments_of(QuestionInput.model_validate(parts))
    assert arguments["resource"]["type"] == "todo"
    assert arguments.get(part, {}).get("properties", {}) == properties
    assert set(arguments) <= {"resource", part}
    assert RICK not in json.dumps(arguments, default=str)


@pytest.mark.skipif(GRPCURL is None, reason="grpcurl is not installed")
async def test_grpcurl_speaks_authzens_json_as_it_stands(gate):
    batch = {"evaluations": [{}, {"subject": {"type": "user", "id": BETH}}], **question("can_create_todo")}
    words = ["-plaintext", "-H", "authorization: Bearer token-of-pep", "-d", "@", f"127.0.0.1:{gate.server.port}"]

    def run(body: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [GRPCURL, *words, "phylactery.riskgate.v1.RiskGateService/EvaluateAccess"],
            input=json.dumps(body),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(done.stdout)

    denied = await asyncio.to_thread(run, question("can_create_todo", BETH))
    assert denied["decision"] is False, "false is written out, not left to be guessed"
    assert {"id", "evaluation_id", "evaluated_at", "reason", "reason_admin", "reason_user"} == denied["context"].keys()
    answer = await asyncio.to_thread(run, batch)
    assert [one["decision"] for one in answer["evaluations"]] == [True, False]
    hinted = await asyncio.to_thread(run, question("can_delete_list", type="list"))
    assert hinted["context"]["access_request"].keys() == {"template", "expires_at", "display"}


async def test_what_was_sensitive_when_it_was_asked_stays_withheld_under_a_later_catalog(make_gate, tmp_path):
    folder = tmp_path / "sensitive"
    shutil.copytree(BUNDLE, folder)
    plain = (folder / "tools.yaml").read_text()
    (folder / "tools.yaml").write_text(plain.replace("    effect:", "    sensitive: [/resource/id]\n    effect:"))
    gate = await make_gate(bundle=folder)
    ana, aldo = gate.person("ana"), gate.person("aldo")
    message = json_format.ParseDict(question(subject="ana", id="sesame-open"), access_pb2.EvaluateAccessRequest())
    await ana.decisions.EvaluateAccess(message, metadata=ana.metadata, timeout=60)
    (folder / "tools.yaml").write_text(plain)
    settings = (folder / "riskgate.yaml").read_text()
    (folder / "riskgate.yaml").write_text(re.sub(r"revision: \d+", "revision: 99", settings))
    assert (await activate(gate.person("petra"), folder)).bundle.revision == 99
    (entry,) = (await listed(aldo, include_values=True, kind="access_evaluated")).entries
    paths = ["/args_hash", "/arguments/resource"]
    assert [(value.path, value.withheld) for value in entry.values] == [(path, True) for path in paths]
    assert b"sesame" not in entry.SerializeToString()


# ---- over either store, by the client, beside a shadow --------------------------------------------------------------


@pytest.fixture
async def shared(make_gate, shared_database):
    """Two replicas over one database."""
    return [
        await make_gate("data", bundle=BUNDLE, instance=f"i{number}", database_url=shared_database)
        for number in range(2)
    ]


@pytest.fixture
def pep():
    """Open the client of the point that enforces."""

    def open_(gate) -> RiskGateClient:
        return RiskGateClient(f"127.0.0.1:{gate.server.port}", token="token-of-pep")

    return open_


async def test_the_client_asks_one_question_or_several_and_either_store_keeps_every_answer(shared, pep):
    one, two = shared
    mine = AccessQuestion(MORTY, "can_update_todo", "todo", "1", {"ownerID": "morty@the-citadel.com"})
    others = AccessQuestion(MORTY, "can_update_todo", "todo", "1", {"ownerID": "rick@the-citadel.com"})
    async with pep(one) as first, pep(two) as second:
        yes, no = await first.evaluate_access(mine), await second.evaluate_access(others)
        several = await second.evaluate_access_batch([mine, others, mine])
        until_no = await first.evaluate_access_batch([mine, others, mine], semantic="deny_on_first_deny")
    assert (yes.allowed, no.allowed, no.reason) == (True, False, "POLICY_NO_PERMIT")
    assert [answer.allowed for answer in several] == [True, False, True]
    assert [answer.allowed for answer in until_no] == [True, False]
    records = {record["evaluation_id"]: record for record in one.records("access_evaluated")}
    answers = [yes, no, *several, *until_no]
    assert records.keys() == {answer.evaluation_id for answer in answers}
    assert [records[answer.evaluation_id]["decision"] == "ALLOW" for answer in answers] == [
        answer.allowed for answer in answers
    ]
    assert {record["log"] for record in records.values()} == {"riskgate/i0", "riskgate/i1"}
    assert (yes.reason_user["es"], no.evaluated_at.tzinfo) != ("", None)


async def test_many_ask_at_once_over_two_replicas_and_every_answer_is_on_record(shared, pep):
    async with pep(shared[0]) as first, pep(shared[1]) as second:
        questions = [AccessQuestion(RICK, "can_read_todos", "todo", f"t{number}") for number in range(40)]
        answers = await asyncio.gather(
            *((first, second)[number % 2].evaluate_access(one) for number, one in enumerate(questions))
        )
    assert all(answer.allowed for answer in answers)
    kept = [record["evaluation_id"] for record in shared[0].records("access_evaluated")]
    assert sorted(kept) == sorted(answer.evaluation_id for answer in answers)


async def test_what_needs_a_person_says_so_to_the_client(gate, pep):
    async with pep(gate) as client:
        asked = await client.evaluate_access(AccessQuestion(RICK, "can_delete_list", "list", "one"))
        useless = await client.evaluate_access(AccessQuestion(BETH, "can_delete_list", "list", "one"))
    assert (asked.allowed, asked.reason, asked.approval_class) == (False, "APPROVAL_REQUIRED", "peer")
    assert asked.approval_until > asked.evaluated_at
    assert (useless.allowed, useless.approval_class, useless.approval_until) == (False, "", None)


async def test_a_shadow_sees_access_evaluations_and_tells_its_differences(gate, ask, tmp_path):
    without_cases = shutil.ignore_patterns("tests")
    stricter = Path(shutil.copytree(BUNDLE, tmp_path / "stricter", ignore=without_cases))
    forbid = '@id("no-reads") @title("Nobody reads") forbid (principal, action == Action::"can_read_todos", resource);'
    (stricter / "policies" / "more.cedar").write_text(forbid + "\n")
    await activate(gate.person("petra"), stricter, shadow=True)
    answer = await ask(question())
    await ask(question("can_update_todo", MORTY, **OWNED_BY_MORTY))
    await ask({**question(), "subject": {"type": "robot", "id": "r2"}})
    shadow = gate.riskgate.policies.shadow
    while shadow.decided < 2 or not gate.records("shadow_difference"):  # noqa: ASYNC110 - it decides after the answer
        await asyncio.sleep(0.01)
    (record,) = gate.records("shadow_difference")
    assert answer["decision"]
    assert (record["evaluation_id"], record["subject"], record["actor"]) == (
        answer["context"]["evaluation_id"],
        RICK,
        "pep",
    )
    assert (record["decision"], record["shadow_decision"]) == ("ALLOW", "BLOCKED")
    assert (record["shadow_policy_ids"], "decision_id" in record) == (["no-reads"], False)
    assert (shadow.decided, shadow.differed) == (2, 1), "what is about no user asks no policy"
