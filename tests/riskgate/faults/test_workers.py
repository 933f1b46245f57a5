"""Several processes behind one port: each writes its own log, dead ones are replaced, and none is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from grpc import aio
from phylactery.riskgate.v1 import riskgate_pb2, riskgate_pb2_grpc
from phylactery_chassis.db.database import Database
from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.audit.export import export_log, verify_export
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.keys.ring import load_keys
from phylactery_riskgate.store.audit import log_names

from tests.support.processes.forks import Forked

READ = ("read_file", '{"path":"a.txt"}')
BOTH = {"riskgate/0", "riskgate/1"}


class Fleet:
    """RiskGate with several workers, as a person starts it."""

    def __init__(
        self,
        folder: Path,
        url: str = "",
        port: int = 0,
        workers: int = 2,
        bundle: Path | None = None,
        *,
        anew: bool = False,
    ) -> None:
        """With ``anew`` each worker is an interpreter that begins anew, as in the product; otherwise it is a fork."""
        self.ready = folder / "ready.json"
        environment = os.environ | {
            "RISKGATE_DATA_DIR": str(folder),
            "RISKGATE_DATABASE_URL": url,
            "RISKGATE_READY_FILE": str(self.ready),
            "RISKGATE_DRAIN_SECONDS": "1",
            "RISKGATE_LOG_LEVEL": "ERROR",  # nobody reads what is said before the end
        }
        words = ["serve", "--workers", workers, "--port", port, *(["--bundle", bundle] if bundle else [])]
        self._said = folder / "said"
        module = "phylactery_riskgate.cli" if anew else "tests.support.riskgate.forked_workers"
        self.process = Forked(module, words, environment, err=self._said)

    def said(self) -> str:
        """Return what was said on standard error up to now."""
        return self._said.read_text() if self._said.exists() else ""

    async def told(self) -> dict[str, object]:
        """Return what the ready file says."""
        await asyncio.to_thread(until, lambda: self.ready.exists() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said()
        return json.loads(self.ready.read_text())

    async def ended(self) -> tuple[int, str]:
        """Wait for the end and return the exit code and what was said."""
        code = await asyncio.to_thread(self.process.wait, 60)
        return code, self.said()

    async def stop(self) -> int:
        self.process.terminate()
        return (await self.ended())[0]


def until(true: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Fleet]]:
    """Start a fleet over the test's folder; none outlives the test."""
    started: list[Fleet] = []

    def make(**options: object) -> Fleet:
        started.append(Fleet(tmp_path, **options))
        return started[-1]

    yield make
    for fleet in started:
        fleet.process.kill()
        fleet.process.wait()


async def ask_all(port: int, call, numbers: range, connections: int = 24) -> list[riskgate_pb2.EvaluateResponse]:
    """Ask about each number; the kernel gives every connection to one of the workers."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    async with contextlib.AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(aio.insecure_channel(f"127.0.0.1:{port}", options=options))
            for _ in range(connections)
        ]
        stubs = [riskgate_pb2_grpc.RiskGateServiceStub(channel) for channel in channels]

        async def ask(number: int) -> riskgate_pb2.EvaluateResponse:
            request = riskgate_pb2.EvaluateRequest(call=call(*READ, f"c{number}"), thread_id="t1", run_id="r1")
            return await stubs[number % connections].Evaluate(request, timeout=60, wait_for_ready=True)

        return await asyncio.gather(*(ask(number) for number in numbers))


async def both_serve(port: int, call) -> None:
    """Wait until both workers answer."""
    starts = itertools.count(1_000, 1_000)
    served: set[str] = set()
    deadline = time.monotonic() + 60
    while served != BOTH:
        assert time.monotonic() < deadline, f"only {served} served"
        at = next(starts)
        with contextlib.suppress(aio.AioRpcError):  # a connection the kernel gave to the one that just died
            served = {one.audit_log for one in await ask_all(port, call, range(at, at + 24))}


@pytest.mark.slow
async def test_workers_share_a_port_and_each_writes_a_log_that_verifies(start, tmp_path, shared_database, call):
    if shared_database:
        empty = Database(shared_database)
        empty.migrate(PACKAGE)
        empty.close()
    fleet = start(url=shared_database)
    told = await fleet.told()
    answers = await ask_all(told["port"], call, range(60))
    assert {answer.audit_log for answer in answers} == BOTH
    again = await ask_all(told["port"], call, range(60), connections=7)
    assert [(one.decision_id, one.replayed) for one in again] == [(one.decision_id, True) for one in answers]
    assert await fleet.stop() == 0
    assert not any(alive(pid) for pid in told["workers"])
    database, ring = Database(shared_database or f"sqlite:///{tmp_path}/riskgate.db"), load_keys(tmp_path / "keys")
    heads = HeadStore(tmp_path / "keys" / "heads")
    try:
        assert set(database.read_sync(log_names)) == BOTH
        for name in BOTH:
            out = tmp_path / "out.jsonl"
            export = partial(export_log, name=name, out=out, keys=ring.public, signer=ring.signer, heads=heads)
            database.read_sync(export)
            assert verify_export(out, list(ring.public)).ok
    finally:
        database.close()


@pytest.mark.slow
async def test_a_killed_worker_is_replaced_and_nothing_it_answered_is_lost(start, tmp_path, call):
    fleet = start()
    told = await fleet.told()
    answers = await ask_all(told["port"], call, range(24))
    os.kill(told["workers"][0], signal.SIGKILL)
    await both_serve(told["port"], call)
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        kept = {one for (one,) in database.execute("SELECT id FROM decisions")}
    assert {one.decision_id for one in answers} <= kept
    assert await fleet.stop() == 0


@pytest.mark.slow
async def test_a_worker_that_dies_while_the_bundle_is_being_written_is_replaced_under_the_active_one(
    start, tmp_path, call, bundle
):
    fleet = start(bundle=bundle)
    told = await fleet.told()
    (bundle / "riskgate.yaml").write_text("revision: [")
    for pid in told["workers"]:
        os.kill(pid, signal.SIGKILL)
    await both_serve(told["port"], call)
    with sqlite3.connect(tmp_path / "riskgate.db") as database:
        refused = database.execute("SELECT record FROM audit_entries WHERE kind = 'bundle_refused'").fetchall()
    assert [json.loads(one)["reason"] for (one,) in refused] == ["BUNDLE_INVALID"] * 2
    assert await fleet.stop() == 0


@pytest.mark.slow
async def test_a_worker_that_cannot_start_again_is_tried_until_it_can_and_the_others_go_on(start, tmp_path, call):
    fleet = start()
    told = await fleet.told()
    keys = tmp_path / "keys" / "signing.json"
    good = keys.read_text()
    keys.write_text("no keys at all")
    os.kill(told["workers"][0], signal.SIGKILL)

    await asyncio.to_thread(until, lambda: "cannot restart; the others continue" in fleet.said())
    assert {one.audit_log for one in await ask_all(told["port"], call, range(24))} == {"riskgate/1"}
    keys.write_text(good)
    await both_serve(told["port"], call)
    assert await fleet.stop() == 0


@pytest.mark.slow
async def test_workers_none_of_which_can_start_again_end_with_the_reason(start, tmp_path):
    fleet = start()
    told = await fleet.told()
    (tmp_path / "keys" / "signing.json").write_text("no keys at all")
    for pid in told["workers"]:
        os.kill(pid, signal.SIGKILL)
    code, said = await fleet.ended()
    assert (code, "cannot restart, and no other worker is serving" in said) == (2, True)


@pytest.mark.slow
async def test_workers_end_with_the_process_that_started_them(start):
    fleet = start(anew=True)
    told = await fleet.told()
    fleet.process.kill()
    await asyncio.to_thread(until, lambda: not any(alive(pid) for pid in told["workers"]))
    assert (await fleet.ended())[0] == -signal.SIGKILL


async def test_a_port_somebody_listens_on_is_named_and_no_worker_starts(start, tmp_path):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # even one that would share it
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, said = await start(port=port).ended()
    assert (code, f"cannot listen on 127.0.0.1:{port}" in said) == (2, True)
    assert not (tmp_path / "riskgate.db").exists()


@pytest.mark.slow
async def test_workers_that_cannot_start_end_with_the_reason(start, tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "signing.json").write_text("no keys at all")
    code, said = await start().ended()
    assert (code, "signing.json" in said, "worker 0 cannot start" in said) == (2, True, True)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_either_signal_drains_and_ends_all(start, number):
    fleet = start(workers=3)
    told = await fleet.told()
    assert len(told["workers"]) == 3
    fleet.process.send_signal(number)
    assert (await fleet.ended())[0] == 0
    assert not any(alive(pid) for pid in told["workers"])


@pytest.mark.slow
async def test_each_worker_has_a_port_of_its_own_for_metrics_which_add_up(start, monkeypatch, call):
    first = 0
    while not first:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError, OverflowError):
                next_one.bind(("127.0.0.1", one.getsockname()[1] + 1))
                first = one.getsockname()[1]
    monkeypatch.setenv("RISKGATE_METRICS_PORT", str(first))
    fleet = start(workers=2)
    told = await fleet.told()
    await ask_all(int(told["port"]), call, range(20))
    name = "rpc_server_calls_total"
    evaluated = 'phylactery_rpc_outcome="ok",rpc_method="phylactery.riskgate.v1.RiskGateService/Evaluate"'
    counts = []
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        for port in (first, first + 1):
            page = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
            [line] = [row for row in page.splitlines() if row.startswith(f"{name}{{{evaluated}")]
            counts.append(float(line.split()[-1]))
    assert sum(counts) == 20
    assert await fleet.stop() == 0
