"""Replicas follow the active bundle, and no request sees a mix of two; a failing store changes nothing."""

from __future__ import annotations

import asyncio
import shutil

import grpc
import pytest
import sqlalchemy as sa
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery.riskgate.v1 import policy_pb2, types_pb2
from phylactery_riskgate.bundles.signing import write_signature
from phylactery_riskgate.domain.bundle.bundle import load_bundle

from tests.riskgate.bundles.test_activation import NO_READS, QUICK, READ, activate, shown, until


@pytest.fixture(params=["embedded", pytest.param("postgresql", marks=pytest.mark.slow)])
def shared(request: pytest.FixtureRequest) -> dict[str, object]:
    """What two replicas over one database are opened with."""
    url = request.getfixturevalue("fresh_database") if request.param == "postgresql" else ""
    return {"database_url": url, **QUICK}


async def test_a_replica_follows_an_activation_and_a_demand_does_not_wait_for_it(make_gate, shared, stricter, call):
    one = await make_gate("data", instance="one", **shared)
    slow = await make_gate("data", instance="two", **{**shared, "bundle_poll_seconds": 60.0})
    quick = await make_gate("data", instance="three", **shared)
    await activate(one.person("petra"), stricter)
    demanded = await slow.person("ana").evaluate(call(*READ, "c1"), min_bundle_revision=2)
    assert (demanded.bundle_revision, demanded.decision) == (2, types_pb2.DECISION_BLOCKED)

    async def followed() -> bool:
        return quick.riskgate.policies._core.live.engine.bundle.revision == 2

    await until(followed)
    assert (await quick.person("ana").evaluate(call(*READ, "c2"))).decision == types_pb2.DECISION_BLOCKED


async def test_a_replica_whose_following_stands_still_looks_before_it_decides_on_old_news(
    make_gate, shared, stricter, call
):
    one = await make_gate("data", instance="one", **shared)
    still = await make_gate("data", instance="two", **shared)
    await still.riskgate.policies.end()  # as where its process was stopped and goes on just now
    done = await activate(one.person("petra"), stricter)
    assert done.follow_within.ToTimedelta().total_seconds() == 0.05
    allowed = await still.person("ana").evaluate(call(*READ, "first"))
    await asyncio.sleep(done.follow_within.ToTimedelta().total_seconds())
    answer = await still.person("ana").evaluate(call(*READ, "second"))
    assert (answer.bundle_revision, answer.decision) == (2, types_pb2.DECISION_BLOCKED)
    assert allowed.bundle_revision in {1, 2}, "until then either may decide"


@pytest.mark.slow
async def test_of_two_replicas_that_activate_at_once_one_wins_and_both_agree(make_gate, shared, bundle_with):
    gates = [await make_gate("data", instance=f"i{number}", **shared) for number in range(2)]
    for revision in range(2, 5):
        candidates = [
            bundle_with(policies=NO_READS.replace("no-reads", f"no-{number}"), revision=revision) for number in range(2)
        ]
        results = await asyncio.gather(
            *(activate(gate.person("petra"), one) for gate, one in zip(gates, candidates, strict=True)),
            return_exceptions=True,
        )
        won = [one.bundle.hash for one in results if isinstance(one, policy_pb2.ActivateBundleResponse)]
        assert len(won) == 1, results

        async def agreed(winner=won[0]) -> bool:
            return {gate.riskgate.policies._core.live.engine.bundle.hash for gate in gates} == {winner}

        await until(agreed)
    assert len(gates[0].records("bundle_activated")) == len(gates[0].records("bundle_refused")) == 3


@pytest.mark.slow
async def test_a_replica_that_cannot_load_the_active_bundle_is_not_serving_until_it_can(
    make_gate, shared, stricter, refused, call
):
    one, two = [await make_gate("data", instance=f"i{number}", **shared) for number in range(2)]
    two.riskgate.policies._load, load = (lambda head: fail()), two.riskgate.policies._load

    async def fail():
        raise ValueError("damaged")

    await activate(one.person("petra"), stricter)
    stub = health_pb2_grpc.HealthStub(two.channel)

    async def health() -> int:
        return (await stub.Check(health_pb2.HealthCheckRequest(service=""), timeout=60)).status

    async def not_serving() -> bool:
        return await health() == health_pb2.HealthCheckResponse.NOT_SERVING

    await until(not_serving)
    refusal = await refused(two.person("ana").evaluate(call(*READ)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "BUNDLE_NOT_LOADED")
    assert two.records("decision") == []
    two.riskgate.policies._load = load

    async def serving() -> bool:
        return await health() == health_pb2.HealthCheckResponse.SERVING

    await until(serving)
    assert (await two.person("ana").evaluate(call(*READ))).bundle_revision == 2


@pytest.mark.slow
async def test_under_load_every_decision_is_of_one_bundle_and_fits_it(make_gate, bundle, stricter, call):
    gate = await make_gate()
    ana, petra = gate.person("ana"), gate.person("petra")
    hashes = {1: load_bundle(bundle).hash, 2: load_bundle(stricter).hash}
    going = True

    async def storm(worker: int) -> list[tuple[int, int]]:
        seen, number = [], 0
        while going:
            answer = await ana.evaluate(call(*READ, f"c{worker}-{number}"))
            seen.append((answer.bundle_revision, answer.decision))
            number += 1
        return seen

    workers = [asyncio.create_task(storm(number)) for number in range(8)]

    async def twenty_more() -> None:
        enough = gate.count("decisions") + 20

        async def decided() -> bool:
            return gate.count("decisions") > enough

        await until(decided)

    await twenty_more()
    await activate(petra, stricter)
    after = await ana.evaluate(call(*READ, "after"))
    await twenty_more()
    going = False
    seen = [one for worker in await asyncio.gather(*workers) for one in worker]
    assert after.bundle_revision == 2
    assert set(seen) == {(1, types_pb2.DECISION_ALLOW), (2, types_pb2.DECISION_BLOCKED)}
    for record in gate.records("decision"):
        assert record["bundle_hash"] == hashes[record["bundle_revision"]]
        assert (record["policy_ids"] == ["no-reads"]) is (record["bundle_revision"] == 2)


async def test_a_store_that_fails_at_activation_leaves_everything_as_it_was(make_gate, stricter, call, refused):
    gate = await make_gate()
    petra = gate.person("petra")
    for table in ("bundles", "audit_entries"):
        gate.fail_writes(table)
        refusal = await refused(activate(petra, stricter))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        gate.database.write_sync(lambda c: c.execute(sa.text("DROP TRIGGER no_rows")))
    assert (await shown(petra)).live.revision == 1
    assert (await gate.person("ana").evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    assert (await activate(petra, stricter)).bundle.revision == 2


def test_the_hash_is_of_names_and_texts_alone(bundle, tmp_path):
    first = load_bundle(bundle).hash
    copy = tmp_path / "copy"
    for path in sorted((path for path in bundle.rglob("*") if path.is_file()), reverse=True):
        target = copy / path.relative_to(bundle)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    write_signature(copy, "whatever")
    assert load_bundle(copy).hash == first
    head = yaml.safe_load((copy / "riskgate.yaml").read_text())
    (copy / "riskgate.yaml").write_text(yaml.safe_dump(head | {"revision": 2}))
    assert load_bundle(copy).hash != first
    shutil.rmtree(copy)
