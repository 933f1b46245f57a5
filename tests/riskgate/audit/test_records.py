"""A record holds the inputs of its decision: enough to repeat it, and marks for what is sensitive."""

from __future__ import annotations

import json

from phylactery_riskgate.audit.commitments import ARGS_HASH, CLAIMED_HASH, RAW_ARGS_HASH, RAW_ARGUMENTS
from phylactery_riskgate.domain.canonical import hash_json
from phylactery_riskgate.store.audit import Place

HASH = "sha256:" + "a" * 64


def values_of(gate, record) -> dict[str, object]:
    log = gate.riskgate.audit
    place = Place(record["log"], record["index"])
    return gate.database.read_sync(lambda c: log.values(c, record["tenant"], place)) or {}


async def test_every_decision_records_who_asked_with_what_standing_and_what_they_claimed(gate, call):
    await gate.person("ana").evaluate(call("echo", '{"text":"a"}', "c1"))
    await gate.through_agent("ana").evaluate(call("echo", '{"text":"a"}', "c2"), run="r2")
    await gate.person("ana").evaluate(call("nobody_knows", "{}", "c3", tool_schema_hash=HASH, raw_args_hash=HASH))
    approval = await gate.person("ana").approved(call(call_id="c4"))
    await gate.person("ana").evaluate(call(call_id="c4"), approval=approval.id)
    own, delegated, unknown, _, approved = gate.records("decision")
    assert own["caller"] == {"level": "user", "groups": [], "direct": True}
    assert (delegated["caller"]["direct"], delegated["actor"]) == (False, "agent")
    assert (unknown["claimed"], values_of(gate, unknown)[CLAIMED_HASH]) == ({"tool_schema_hash": HASH}, HASH)
    assert (own["claimed"], own["approved"], approved["approved"]) == ({}, [], ["self"])
    assert all(record["thread_tenant"] == "" and record["caller"] for record in (own, delegated, unknown, approved))


async def test_arguments_that_fitted_no_tool_lie_beside_the_record_as_they_came_and_are_never_shown(gate, call):
    ana = gate.person("ana")
    unknown = '{"any": "thing", "n": 1.50}'
    await ana.evaluate(call("nobody_knows", unknown, "c1"))
    await ana.evaluate(call("read_file", '{"wrong":"shape"}', "c2"))
    await ana.evaluate(call("read_file", '{"path":"a","path":"b"}', "c3"))
    await ana.evaluate(call("read_file", '{"path":"a"}', "c4"))
    first, second, no_json, bound = [values_of(gate, record) for record in gate.records("decision")]
    assert first == {RAW_ARGUMENTS: unknown, RAW_ARGS_HASH: hash_json({"any": "thing", "n": 1.5})}
    assert json.loads(second[RAW_ARGUMENTS]) == {"wrong": "shape"}
    assert no_json == {}
    told = hash_json({"path": "a"})
    assert bound == {"/arguments/path": "a", ARGS_HASH: told}


async def test_a_record_says_which_of_its_values_its_catalog_called_sensitive(gate, call):
    await gate.person("ana").evaluate(call("pay", '{"to":"bob","note":"x"}', "c1"))
    await gate.person("ana").evaluate(call("echo", '{"text":"x"}', "c2"))
    await gate.person("ana").evaluate(call("nobody_knows", "{}", "c3"))
    assert [record.get("sensitive") for record in gate.records("decision")] == [["/arguments/note"], [], None]
