"""Incomplete or hostile bundles, and activations that crash: the live bundle stays until a new one is complete."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
import yaml
from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_riskgate.bundles.lifecycle import FolderWatch
from phylactery_riskgate.bundles.signing import create_key
from phylactery_riskgate.domain.bundle.bundle import load_bundle

from tests.riskgate.bundles.test_activation import NO_READS, parts, shown, signed, until
from tests.support.processes.forks import Forked

READ = ("read_file", '{"path":"a.txt"}')
WATCHED = {"watch_bundle": True, "bundle_poll_seconds": 0.03}
SECONDS = 10
"""What no hostile bundle may take of the processor; each takes well under one."""


# ---- a folder that changes while it is served -----------------------------------------------------------------------


def put(folder: Path, name: str, text: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)


async def live(gate) -> int:
    return (await shown(gate.person("petra"))).live.revision


async def settled(gate) -> None:
    """Wait until the folder was looked at and found as it was twice."""
    watch = gate.riskgate.policies._watch

    async def handled() -> bool:
        return watch._handled == watch._seen is not None and not watch.changed()

    await until(handled)


@pytest.mark.slow
async def test_a_watched_folder_is_taken_over_once_its_revision_is_written_last(make_gate, bundle, stricter, call):
    gate = await make_gate(bundle=bundle, **WATCHED)
    texts = {one.name: one.content.decode() for one in parts(stricter)}
    ana, last = gate.person("ana"), texts.pop("riskgate.yaml")
    for number, (name, text) in enumerate(texts.items()):
        for end in (len(text) // 3, len(text)):
            put(bundle, name, text[:end])
            await settled(gate)
            answer = await ana.evaluate(call(*READ, f"c{number}-{end}"))
            assert (answer.bundle_revision, answer.decision) == (1, types_pb2.DECISION_ALLOW)
    put(bundle, "riskgate.yaml", last)

    async def taken() -> bool:
        return await live(gate) == 2

    await until(taken)
    assert (await ana.evaluate(call(*READ, "last"))).decision == types_pb2.DECISION_BLOCKED
    record = gate.records("bundle_activated")[-1]
    assert (record["subject"], record["source"], record["bundle_hash"]) == (
        "riskgate",
        "folder",
        load_bundle(stricter).hash,
    )
    assert {one["reason"] for one in gate.records("bundle_refused")} <= {"BUNDLE_INVALID", "BUNDLE_ROLLBACK"}


def counted_looks(gate, monkeypatch) -> list[bool]:
    """Count from now on how often the folder was looked at."""
    watch, looks = gate.riskgate.policies._watch, []
    look = watch.changed

    def counted(*, now: bool = False) -> bool:
        looks.append(look(now=now))
        return looks[-1]

    monkeypatch.setattr(watch, "changed", counted)
    return looks


async def test_a_broken_folder_is_told_with_file_and_line_once_and_mended_later(make_gate, bundle, call, monkeypatch):
    gate = await make_gate(bundle=bundle, **WATCHED)
    petra = gate.person("petra")
    good = (bundle / "tools.yaml").read_text()
    put(bundle, "tools.yaml", good.replace("risk: medium", "risk: nobody-knows", 1))

    async def told() -> bool:
        return (await shown(petra)).last_fault.message.startswith("tools.yaml:")

    await until(told)
    looks = counted_looks(gate, monkeypatch)

    async def looked_at_again() -> bool:
        return len(looks) > 5

    await until(looked_at_again)  # many looks later it is still one record
    assert [one["reason"] for one in gate.records("bundle_refused")] == ["BUNDLE_INVALID"]
    assert (await gate.person("ana").evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    head = yaml.safe_load((bundle / "riskgate.yaml").read_text())
    put(bundle, "tools.yaml", good)
    put(bundle, "riskgate.yaml", yaml.safe_dump(head | {"revision": 2}))

    async def mended() -> bool:
        return await live(gate) == 2

    await until(mended)


async def slowly(path: Path, text: str, chooser: random.Random) -> None:
    """Write a file in pieces, with pauses long enough to be taken for its end."""
    with path.open("w") as file:
        while text:
            cut = chooser.randint(1, max(1, len(text) // 4))
            file.write(text[:cut])
            file.flush()
            text = text[cut:]
            await asyncio.sleep(chooser.random() / 20)


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [False, True], ids=["revision last by rename", "signed, in any order"])
async def test_pieces_written_at_random_moments_never_decide(make_gate, bundle, stricter, call, trusted):
    options, key = {}, bundle.with_name("key")
    if trusted:
        create_key(key)
        signed(bundle, key)
        signed(stricter, key)
        options["policy_keys"] = bundle.with_name("key.pub")
    gate = await make_gate(bundle=bundle, watch_bundle=True, bundle_poll_seconds=0.01, **options)
    chooser, hashes = random.Random(7), {load_bundle(bundle).hash, load_bundle(stricter).hash}
    texts = {one.name: one.content.decode() for one in parts(stricter)}
    names, asking = sorted(texts), asyncio.Event()

    async def ask() -> set[str]:
        number = 0
        while not asking.is_set():
            await gate.person("ana").evaluate(call(*READ, f"c{number}"))
            number += 1
        return {record["bundle_hash"] for record in gate.records("decision")}

    asker = asyncio.create_task(ask())
    if trusted:
        chooser.shuffle(names)
    else:
        names.remove("riskgate.yaml")
    for name in names:
        await slowly(bundle / name, texts[name], chooser)
    if not trusted:
        await slowly(bundle / ".riskgate.yaml.part", texts["riskgate.yaml"], chooser)
        (bundle / ".riskgate.yaml.part").rename(bundle / "riskgate.yaml")

    async def taken() -> bool:
        return await live(gate) == 2

    await until(taken)
    asking.set()
    assert await asker <= hashes


async def test_sighup_looks_at_once_also_at_a_folder_nobody_watches(make_gate, bundle, stricter):
    gate = await make_gate(bundle=bundle)
    for one in parts(stricter):
        put(bundle, one.name, one.content.decode())
    assert await live(gate) == 1
    os.kill(os.getpid(), signal.SIGHUP)

    async def taken() -> bool:
        return await live(gate) == 2

    await until(taken)


def test_a_folder_counts_as_changed_once_it_stands_still(tmp_path):
    (tmp_path / "a").write_text("1")
    watch = FolderWatch(tmp_path)
    (tmp_path / "a").write_text("22")
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    (tmp_path / "b").write_text("1")
    assert watch.changed(now=True)
    assert not watch.changed()
    watch.forget()
    assert watch.changed()


# ---- a process that dies --------------------------------------------------------------------------------------------


class Child:
    """A RiskGate of its own, over the packaged bundle, which dies at a crash point."""

    def __init__(self, folder: Path, point: str = "") -> None:
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        settings = {
            "CRASH_SERVICE": "riskgate",
            "CRASH_AT": point,
            "RISKGATE_DATA_DIR": str(folder),
            "RISKGATE_PORT": "0",
            "RISKGATE_READY_FILE": str(ready),
        }
        self.ready = ready
        self.process = Forked("tests.support.processes.crashing", environment=os.environ | settings)

    async def serving(self) -> Child:
        async def started() -> bool:
            assert self.process.poll() is None, "it did not start"
            return self.ready.exists()

        await until(started)
        port = yaml.safe_load(self.ready.read_text())["port"]
        self.channel = aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])
        self.policies = policy_pb2_grpc.PolicyServiceStub(self.channel)
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(self.channel)
        return self

    async def activate(self, folder: Path) -> policy_pb2.ActivateBundleResponse:
        return await self.policies.ActivateBundle(policy_pb2.ActivateBundleRequest(files=parts(folder)), timeout=60)

    async def end(self, number: int) -> None:
        await self.channel.close()
        if number == signal.SIGTERM:
            self.process.terminate()
        assert await asyncio.to_thread(self.process.wait, 60) == (0 if number == signal.SIGTERM else -number)


@pytest.mark.slow
async def test_killed_between_commit_and_answer_the_activation_stands(tmp_path, bundle_with):
    later = bundle_with(policies=NO_READS, revision=1_000)  # than the packaged one
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    first = await Child(data).serving()
    await first.end(signal.SIGTERM)
    child = await Child(data, "riskgate.activated").serving()
    with pytest.raises(aio.AioRpcError):
        await child.activate(later)
    await child.end(signal.SIGKILL)
    again = await Child(data).serving()
    request = riskgate_pb2.EvaluateRequest(
        call=types_pb2.ToolCall(tool=READ[0], tool_call_id="c1", arguments_json=READ[1]), thread_id="t1", run_id="r1"
    )
    answer = await again.decisions.Evaluate(request, timeout=60)
    assert (answer.bundle_revision, answer.decision) == (1_000, types_pb2.DECISION_BLOCKED)
    assert (await again.activate(later)).already_active
    await again.end(signal.SIGTERM)
