"""AuthZEN 1.0 over HTTP: the working group's interop scenario, its certification scenario, and who may ask."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.rpc.server import RunningServer, start
from phylactery_riskgate.app import build as build_riskgate
from phylactery_riskgate.settings import RiskGateSettings

from tests.support.gateway.rpc import Door, open_door

ROOT = Path(__file__).resolve().parents[2]
TODO = ROOT / "examples" / "authzen" / "bundle"
RECORDS = Path(__file__).parent / "data" / "records"
VECTORS = ROOT / "tests" / "riskgate" / "data" / "authzen-todo-decisions-1_0-02.json"
SERVICE = "phylactery.riskgate.v1.RiskGateService"
ONE, SEVERAL, METADATA = "/access/v1/evaluation", "/access/v1/evaluations", "/.well-known/authzen-configuration"


@asynccontextmanager
async def open_gate(folder: Path, bundle: Path, **options: Any) -> AsyncIterator[RunningServer]:
    settings = RiskGateSettings(data_dir=folder / "riskgate", port=0, drain_seconds=0, bundle=bundle, **options)
    settings.prepare()
    server = await start(await build_riskgate(settings), settings)
    try:
        yield server
    finally:
        await server.stop()


def identity(folder: Path, subject: str, role: str) -> dict[str, Any]:
    """Return the settings under which the token "t" is somebody's."""
    entries = [{"hash": token_hash("t"), "subject": subject, "tenant": "local", "roles": [role]}]
    (folder / "tokens.yaml").write_text(yaml.safe_dump({"tokens": entries}))
    return {"identity_mode": "tokens", "tokens_file": folder / "tokens.yaml"}


@asynccontextmanager
async def open_point(folder: Path, bundle: Path) -> AsyncIterator[Door]:
    """Run a decision point over HTTP for the block."""
    async with open_gate(folder, bundle) as gate, open_door(folder, {SERVICE: f"127.0.0.1:{gate.port}"}) as door:
        yield door


@pytest.fixture
async def todo(tmp_path: Path) -> AsyncIterator[Door]:
    async with open_point(tmp_path, TODO) as door:
        yield door


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Door]:
    async with open_point(tmp_path, RECORDS) as door:
        yield door


def decisions(response: httpx.Response) -> list[bool]:
    assert response.headers["content-type"] == "application/json"
    return [one["decision"] for one in response.json()["evaluations"]]


# the interop scenario


async def test_every_decision_of_the_interop_scenario_is_as_published(todo: Door):
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    for vector in vectors["evaluation"]:
        answer = await todo.call(ONE, vector["request"])
        assert (answer.status_code, answer.json()["decision"]) == (200, vector["expected"]), vector
    for vector in vectors["evaluations"]:
        answer = await todo.call(SEVERAL, vector["request"])
        assert decisions(answer) == [one["decision"] for one in vector["expected"]], vector
    assert (len(vectors["evaluation"]), len(vectors["evaluations"])) == (40, 3)


async def test_the_vectors_beside_the_checkout_are_those(data_folder: Path):
    published = data_folder / "conformance" / "authzen" / "decisions-authorization-api-1_0-02.json"
    assert json.loads(published.read_text(encoding="utf-8")) == json.loads(VECTORS.read_text(encoding="utf-8"))


# the certification scenario (openid/authzen, certification/authorization-api-1_0-scenario.md)

ALICE, BOB = {"type": "user", "id": "alice"}, {"type": "user", "id": "bob"}
ADMIN = {**BOB, "properties": {"role": "admin"}}
READ, WRITE = {"name": "read"}, {"name": "write"}
RECORD = {"type": "record", "id": "record-1"}
ACTIVE = {**RECORD, "properties": {"status": "active"}}
ARCHIVED = {"type": "record", "id": "record-2", "properties": {"status": "archived"}}
TIME = {"time": "2025-06-27T18:03-07:00"}


def asked(subject: Any = None, action: Any = None, resource: Any = None, **more: Any) -> dict[str, Any]:
    parts = {"subject": subject, "action": action, "resource": resource, **more}
    return {name: part for name, part in parts.items() if part is not None}


def delete(soft: bool) -> dict[str, Any]:
    return {"name": "delete", "properties": {"soft": soft}}


BASIC = {
    "1.4 rule 1, 2.2.1": (asked(ALICE, READ, RECORD), True),
    "1.4 rule 2": (asked(ALICE, WRITE, RECORD), True),
    "1.4 rule 3": (asked(BOB, READ, RECORD), True),
    "1.4 rule 4, 2.2.2": (asked(BOB, WRITE, RECORD), False),
    "2.2.3 context": (asked(ALICE, READ, RECORD, context={**TIME, "ip": "192.168.1.1"}), True),
    "2.2.4 archived": (asked(ALICE, WRITE, ARCHIVED), False),
    "2.2.5 admin": (asked(ADMIN, WRITE, ARCHIVED), True),
    "2.2.6 soft": (asked(ALICE, delete(soft=True), RECORD), True),
    "2.2.7 hard": (asked(ALICE, delete(soft=False), RECORD), False),
    "2.2.8 more properties": (
        asked(
            {**ALICE, "properties": {"department": "Sales", "role": "manager"}},
            {**READ, "properties": {"method": "GET"}},
            {**RECORD, "properties": {"status": "active", "owner": "bob"}},
        ),
        True,
    ),
    "2.2.9 unknown fields": (asked(ALICE, READ, RECORD, foo="bar", futureField={"nested": True}), True),
}
BATCH = {
    "3.2.1": (asked(ALICE, READ, evaluations=[{"resource": RECORD}, {"resource": {**RECORD, "id": "record-2"}}]), None),
    "3.2.2": (asked(BOB, None, RECORD, evaluations=[{"action": READ}, {"action": WRITE}]), [True, False]),
    "3.2.3": (asked(ALICE, WRITE, evaluations=[{"resource": ACTIVE}, {"resource": ARCHIVED}]), [True, False]),
    "3.2.4": (asked(None, WRITE, ARCHIVED, evaluations=[{"subject": ALICE}, {"subject": ADMIN}]), [False, True]),
    "3.2.5": ({"evaluations": [asked(ALICE, READ, RECORD), asked(BOB, WRITE, RECORD)]}, [True, False]),
    "3.2.6": (
        asked(
            ALICE,
            READ,
            context=TIME,
            evaluations=[
                {"resource": RECORD},
                {"resource": {**RECORD, "id": "record-2"}, "context": {**TIME, "source": "batch-override"}},
            ],
        ),
        None,
    ),
    "3.2.7": (
        asked(
            ALICE,
            WRITE,
            {"type": "record"},
            evaluations=[{"resource": {"id": "record-1", "properties": {"status": "active"}}}, {"resource": ARCHIVED}],
        ),
        [True, False],
    ),
    "3.4.1 one without a resource": (asked(ALICE, READ, evaluations=[{"resource": RECORD}, {}]), [True, False]),
}
MISSING = {
    "2.4.1 subject": asked(None, READ, RECORD),
    "2.4.1 action": asked(ALICE, None, RECORD),
    "2.4.1 resource": asked(ALICE, READ),
    "2.4.2 subject.type": asked({"id": "alice"}, READ, RECORD),
    "2.4.2 subject.id": asked({"type": "user"}, READ, RECORD),
    "2.4.2 action.name": asked(ALICE, {}, RECORD),
    "2.4.2 resource.type": asked(ALICE, READ, {"id": "record-1"}),
    "2.4.2 resource.id": asked(ALICE, READ, {"type": "record"}),
    "2.4.4 no JSON": "{",
    "2.4.5 empty": "",
    "2.4.6 subject is a string": asked("alice", READ, RECORD),
    "2.4.6 action.name is a number": asked(ALICE, {"name": 123}, RECORD),
}


async def test_basic_certification(records: Door):
    for name, (request, expected) in BASIC.items():
        answer = await records.call(ONE, request)
        assert (answer.status_code, answer.json()["decision"]) == (200, expected), name
        assert answer.headers["content-type"] == "application/json"
        assert isinstance(answer.json().get("context", {}), dict)


async def test_batch_certification(records: Door):
    for name, (request, expected) in BATCH.items():
        answer = await records.call(SEVERAL, request)
        assert answer.status_code == 200, name
        found = decisions(answer)
        assert len(found) == len(request["evaluations"])
        assert all(isinstance(one, bool) for one in found)
        assert expected is None or found == expected, name
        assert "decision" not in answer.json()
    for empty in ({}, {"evaluations": []}):  # 3.4.2, 3.4.3
        assert (await records.call(SEVERAL, asked(ALICE, READ, RECORD) | empty)).json()["decision"] is True


@pytest.mark.parametrize("path", [ONE, SEVERAL])
async def test_what_is_missing_or_malformed_is_a_bad_request(records: Door, path: str):
    for name, request in MISSING.items():
        answer = await records.call(path, request)
        assert answer.status_code == 400, name
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text, name
    wrong = await records.call(path, asked(ALICE, READ, RECORD), content_type="text/plain")  # 2.4.3
    assert (wrong.status_code, wrong.text) == (400, "Content-Type is not application/json")


async def test_headers_and_repetition_of_the_certification(records: Door):
    request = asked(ALICE, READ, RECORD)
    named = await records.call(ONE, request, x_request_id="bfe9eb29-ab87-4ca3-be83-a1d5d8305716")
    assert named.headers["x-request-id"] == "bfe9eb29-ab87-4ca3-be83-a1d5d8305716"
    refused = await records.call(ONE, {}, x_request_id="mine")
    assert (refused.status_code, refused.headers["x-request-id"]) == (400, "mine")
    assert {(await records.call(ONE, request)).json()["decision"] for _ in range(5)} == {True}


async def test_discovery_certification(tmp_path: Path):
    (tmp_path / "tokens.yaml").write_text(
        yaml.safe_dump(
            {"tokens": [{"hash": token_hash("t"), "subject": "p", "tenant": "local", "roles": ["delegate"]}]}
        )
    )
    tokens = {"identity_mode": "tokens", "tokens_file": tmp_path / "tokens.yaml"}
    base = "https://pdp.example.com"
    async with open_gate(tmp_path, RECORDS, **tokens) as gate:
        services = {SERVICE: f"127.0.0.1:{gate.port}"}
        async with open_door(tmp_path, services, public_url=base, **tokens) as door:
            answer = await door.client.get(METADATA)
            assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
            assert answer.json() == {
                "policy_decision_point": base,
                "access_evaluation_endpoint": base + ONE,
                "access_evaluations_endpoint": base + SEVERAL,
            }
            nobody = await door.call(ONE, asked(ALICE, READ, RECORD))
            assert (nobody.status_code, nobody.headers["content-type"]) == (401, "text/plain; charset=utf-8")
            known = await door.call(ONE, asked(ALICE, READ, RECORD), authorization="Bearer t")
            assert known.json()["decision"] is True


# beside the scenarios


async def test_without_a_public_url_the_metadata_names_the_address_it_listens_on(records: Door):
    assert (await records.client.get(METADATA)).json()["policy_decision_point"] == records.url


async def test_several_are_evaluated_until_their_semantic_ends_them(records: Door):
    def request(semantic: str) -> dict[str, Any]:
        evaluations = [{"action": READ}, {"action": {"name": "a b"}}, {"action": WRITE}, {"action": READ}]
        return asked(BOB, None, RECORD, evaluations=evaluations, options={"evaluations_semantic": semantic})

    assert decisions(await records.call(SEVERAL, request("execute_all"))) == [True, False, False, True]
    assert decisions(await records.call(SEVERAL, request("deny_on_first_deny"))) == [True, False]
    assert decisions(await records.call(SEVERAL, request("permit_on_first_permit"))) == [True]
    unknown = await records.call(SEVERAL, request("maybe"))
    assert (unknown.status_code, "evaluations_semantic" in unknown.text) == (400, True)


async def test_an_invalid_evaluation_says_which_part_and_the_others_have_their_records(records: Door):
    bad = [{}] * 30
    answer = await records.call(SEVERAL, asked(ALICE, READ, evaluations=[*bad, {"resource": RECORD}, *bad]))
    assert decisions(answer) == [False] * 30 + [True] + [False] * 30
    first, *_ = answer.json()["evaluations"]
    assert first["context"]["reason"] == "INVALID_REQUEST"
    assert "resource" in first["context"]["reason_admin"]["en"]
    assert answer.json()["evaluations"][30]["context"]["evaluation_id"]
    none = await records.call(SEVERAL, asked(ALICE, READ, evaluations=[{}, {}]))
    assert decisions(none) == [False, False]


async def test_too_many_evaluations_are_a_bad_request(records: Door):
    answer = await records.call(SEVERAL, asked(ALICE, READ, RECORD, evaluations=[{}] * 101))
    assert (answer.status_code, "evaluations" in answer.text) == (400, True)


async def test_so_many_evaluations_are_refused_before_they_are_copied(records: Door):
    answer = await records.call(SEVERAL, asked(ALICE, READ, RECORD, evaluations=[{}] * 5_000))
    assert (answer.status_code, "more than 1000 evaluations" in answer.text) == (400, True)


async def test_a_key_given_twice_decides_nothing(records: Door):
    twice = '{"subject": {"type": "user", "id": "bob", "id": "alice"}, "action": {"name": "read"}, "resource": {}}'
    answer = await records.call(ONE, twice)
    assert (answer.status_code, "subject.id" in answer.text) == (400, True)
    assert "alice" not in answer.text


async def test_who_may_not_ask_about_somebody_is_forbidden_and_batches_are_refused_whole(tmp_path: Path):
    tokens = identity(tmp_path, "alice", "caller")
    async with (
        open_gate(tmp_path, RECORDS, **tokens) as gate,
        open_door(tmp_path, {SERVICE: f"127.0.0.1:{gate.port}"}, **tokens) as door,
    ):
        own = await door.call(ONE, asked(ALICE, READ, RECORD), authorization="Bearer t")
        assert own.json()["decision"] is True
        for path, request in (
            (ONE, asked(BOB, READ, RECORD)),
            (SEVERAL, asked(None, READ, RECORD, evaluations=[{"subject": ALICE}, {"subject": BOB}, {}])),
        ):
            answer = await door.call(path, request, authorization="Bearer t")
            assert answer.status_code == 403, path


@pytest.mark.slow
async def test_a_gate_that_is_away_answers_neither_true_nor_false(tmp_path: Path):
    async with open_door(tmp_path, {SERVICE: "127.0.0.1:1"}) as door:
        answer = await door.call(ONE, asked(ALICE, READ, RECORD))
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
    assert "try again" in answer.text
