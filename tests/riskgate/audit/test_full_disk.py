"""A full disk is reported as such, nothing is decided, and everything works again once there is space."""

from __future__ import annotations

import asyncio
from functools import partial

import grpc
import pytest
from phylactery.riskgate.v1 import riskgate_pb2, types_pb2
from phylactery_chassis.db.scrub import forget_log
from structlog.testing import capture_logs

from tests.riskgate.bundles.test_activation import activate, parts, shown, until
from tests.support.databases.power import Disk

READ = ("read_file", '{"path":"a.txt"}')
FULL = (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")


@pytest.fixture
def make_full(make_gate, tmp_path):
    """Open a RiskGate over a disk of its own; the returned function takes its room away."""

    async def make(**options):
        disk = Disk(f"below-{tmp_path.name}")
        gate = await make_gate(database_url=f"sqlite+power:///{tmp_path / 'riskgate.db'}?disk={disk.name}", **options)

        async def fill() -> None:
            assert await forget_log(gate.database)  # so that every page it writes takes room
            disk.room = 0

        return gate, fill, partial(setattr, disk, "room", None)

    return make


async def test_a_full_disk_refuses_whatever_would_be_recorded_and_leaves_everything_as_it_was(
    make_full, call, refused, stricter
):
    gate, fill, make_room = await make_full()
    ana, petra = gate.person("ana"), gate.person("petra")
    permit = (await ana.evaluate(call(*READ, "before"))).permit
    approval = (await ana.evaluate(call(call_id="waits"))).approval
    tables = ("decisions", "approvals", "approval_votes", "redemptions", "audit_entries", "bundles")
    before = {table: gate.count(table) for table in tables}
    questions = [riskgate_pb2.EvaluateRequest(call=call(*READ, f"c{i}"), thread_id="t1", run_id="r1") for i in range(3)]

    many = riskgate_pb2.EvaluateBatchRequest(requests=questions)
    calls = {
        "evaluate": lambda: ana.evaluate(call(*READ, "c9")),
        "batch": lambda: ana.decisions.EvaluateBatch(many, metadata=ana.metadata, timeout=60),
        "redeem": lambda: ana.redeem(permit, call(*READ, "before")),
        "wrong code": lambda: ana.approve(approval, code="WRONGCODE1"),
        "approve": lambda: ana.approve(approval),
        "activate": lambda: activate(petra, stricter),
    }
    await fill()
    for name, ask in calls.items():
        refusal = await refused(ask())
        assert (refusal.code, refusal.reason) == FULL, name
        assert "free disk space" in refusal.message
    assert {table: gate.count(table) for table in tables} == before
    assert (await ana.get(approval.id)).attempts_left == 5
    make_room()
    calls.pop("wrong code")
    done = {name: await ask() for name, ask in calls.items()}
    assert done["redeem"].receipt
    assert done["approve"].state == types_pb2.APPROVAL_STATE_APPROVED
    assert [one.response.permit != "" for one in done["batch"].results] == [True] * 3
    assert await gate.database.probe()


async def test_a_bundle_that_finds_the_disk_full_is_taken_from_its_folder_once_there_is_room(
    make_full, bundle, stricter
):
    gate, fill, make_room = await make_full(bundle=bundle, watch_bundle=True, bundle_poll_seconds=0.05)
    texts = {one.name: one.content.decode() for one in parts(stricter)}
    await fill()
    with capture_logs() as lines:
        for name in sorted(texts, key="riskgate.yaml".__eq__):  # the revision last
            (bundle / name).write_text(texts[name])
        while "STORE_FULL" not in [line.get("reason") for line in lines]:  # noqa: ASYNC110 - a poll of the service
            await asyncio.sleep(0.01)
    assert (await shown(gate.person("petra"))).live.revision == 1
    make_room()

    async def taken() -> bool:
        return (await shown(gate.person("petra"))).live.revision == 2

    await until(taken)
