"""A shadow bundle reports differences and changes nothing."""

from __future__ import annotations

from collections import deque

import pytest
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_chassis.errors import StartError
from phylactery_riskgate.bundles import shadow as shadow_module

from tests.riskgate.bundles.test_activation import NO_READS, activate, shown, until

MAX_TOLD = 3
READ = ("read_file", '{"path":"a.txt"}')


async def decided(gate, count: int) -> None:
    """Wait until the shadow has seen so many calls."""

    async def enough() -> bool:
        shadow = gate.riskgate.policies.shadow
        told = len(gate.records("shadow_difference"))
        return shadow.decided + shadow.skipped >= count and told >= min(shadow.differed, MAX_TOLD)

    await until(enough)


async def test_only_differences_are_recorded_and_no_answer_changes(gate, ana, call, bundle_with):
    petra = gate.person("petra")
    await activate(petra, bundle_with(policies=NO_READS, revision=7), shadow=True)
    answer = await ana.evaluate(call(*READ))
    assert (answer.decision, answer.bundle_revision) == (types_pb2.DECISION_ALLOW, 1)
    assert (await ana.redeem(answer.permit, call(*READ))).receipt
    write = await ana.evaluate(call(call_id="c2"))
    assert write.approval.approval_class == "self"
    await ana.evaluate(call(*READ))
    await decided(gate, 2)
    view = await shown(petra)
    assert (view.live.revision, view.shadow.revision) == (1, 7)
    assert (view.shadow_decisions, view.shadow_differences, view.shadow_skipped) == (2, 1, 0)
    record = gate.records("shadow_difference")[0]
    assert (record["decision_id"], record["tenant"], record["subject"]) == (answer.decision_id, "acme", "ana")
    assert (record["decision"], record["shadow_decision"]) == ("ALLOW", "BLOCKED")
    assert (record["shadow_revision"], record["shadow_policy_ids"]) == (7, ["no-reads"])
    assert "a.txt" not in str(record)


@pytest.mark.slow
async def test_a_class_that_changes_is_a_difference_too(gate, ana, call, bundle_with):
    stricter = bundle_with(revision=2)
    path = stricter / "policies" / "default.cedar"
    path.write_text(path.read_text().replace('contains(Class::"self")', 'contains(Class::"peer")'))
    await activate(gate.person("petra"), stricter, shadow=True)
    assert (await ana.evaluate(call())).approval.approval_class == "self"
    await decided(gate, 1)
    record = gate.records("shadow_difference")[0]
    assert (record["approval_class"], record["shadow_approval_class"]) == ("self", "peer")


async def test_a_shadow_that_fails_or_cannot_keep_up_is_left_out_and_counted(gate, ana, call, bundle_with, monkeypatch):
    petra = gate.person("petra")
    await activate(petra, bundle_with(policies=NO_READS, revision=2), shadow=True)
    engine = gate.riskgate.policies.shadow.engine
    monkeypatch.setattr(engine, "decide", lambda *_args, **_options: 1 / 0)
    assert (await ana.evaluate(call(*READ, "c1"))).decision == types_pb2.DECISION_ALLOW
    await decided(gate, 1)
    monkeypatch.setattr(shadow_module, "MAX_WAITING", 0)
    for number in range(5):
        assert (await ana.evaluate(call(*READ, f"d{number}"))).decision == types_pb2.DECISION_ALLOW
    view = await shown(petra)
    assert (view.shadow_decisions, view.shadow_skipped) == (0, 6)
    assert gate.records("shadow_difference") == []


async def test_a_shadow_that_always_differs_writes_so_many_records_a_minute(gate, ana, call, bundle_with, monkeypatch):
    monkeypatch.setattr(gate.riskgate.policies.shadow, "_recorded", deque(maxlen=3))
    monkeypatch.setattr(shadow_module, "MAX_RECORDS_PER_MINUTE", 3)
    await activate(gate.person("petra"), bundle_with(policies=NO_READS, revision=2), shadow=True)
    for number in range(8):
        await ana.evaluate(call(*READ, f"c{number}"))
    await decided(gate, 8)

    async def written() -> bool:
        return len(gate.records("shadow_difference")) == 3

    await until(written)
    assert (await shown(gate.person("petra"))).shadow_differences == 8
    gate.clock.advance(61)
    await ana.evaluate(call(*READ, "later"))

    async def again() -> bool:
        return len(gate.records("shadow_difference")) == 4

    await until(again)


async def test_a_shadow_of_a_folder_begins_at_start_and_one_activated_goes_before_it(make_gate, bundle_with, call):
    gate = await make_gate(shadow_bundle=bundle_with(policies=NO_READS, revision=5), bundle_poll_seconds=0.05)
    petra, ana = gate.person("petra"), gate.person("ana")
    assert (await shown(petra)).shadow.revision == 5
    await ana.evaluate(call(*READ))
    await decided(gate, 1)
    assert gate.records("shadow_difference")[0]["shadow_revision"] == 5
    await activate(petra, bundle_with(revision=6), shadow=True)
    assert (await shown(petra)).shadow.revision == 6
    await petra.policies.ActivateBundle(
        policy_pb2.ActivateBundleRequest(shadow=True), metadata=petra.metadata, timeout=60
    )
    assert (await shown(petra)).shadow.revision == 5


async def test_a_shadow_folder_that_is_no_bundle_is_named_at_the_start(make_gate, tmp_path):
    with pytest.raises(StartError) as caught:
        await make_gate(shadow_bundle=tmp_path / "nothing", fresh=True)
    way_out = "name the folder of a bundle in RISKGATE_SHADOW_BUNDLE"
    assert str(caught.value) == f"{tmp_path / 'nothing'}: does not exist; {way_out}"


async def test_a_shadow_folder_that_broke_keeps_no_process_from_starting_again(make_gate, bundle_with, tmp_path, call):
    first = await make_gate(shadow_bundle=bundle_with(policies=NO_READS, revision=5))
    await first.stop()
    again = await make_gate(shadow_bundle=tmp_path / "nothing")
    assert (await again.person("ana").evaluate(call(*READ))).bundle_revision == 1
    assert not (await shown(again.person("petra"))).HasField("shadow")


async def test_replicas_share_an_activated_shadow(make_gate, bundle_with, call):
    one, two = [await make_gate("data", instance=f"i{number}", bundle_poll_seconds=0.05) for number in range(2)]
    await activate(one.person("petra"), bundle_with(policies=NO_READS, revision=2), shadow=True)

    async def followed() -> bool:
        return two.riskgate.policies.shadow.engine is not None

    await until(followed)
    await two.person("ana").evaluate(call(*READ))
    await decided(two, 1)
    assert two.riskgate.policies.shadow.differed == 1
