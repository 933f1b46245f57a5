"""Bundles half written, hostile, or activated by a process that dies: the live one decides until another is whole."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest
import yaml
from grpc import aio
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_riskgate.bundle_folder import FolderWatch
from phylactery_riskgate.domain.bundle import BundleError, default_bundle_folder, load_bundle
from phylactery_riskgate.domain.bundle_files import MAX_BUNDLE_BYTES, MAX_FILE_BYTES, MAX_FILES, read_parts
from phylactery_riskgate.domain.nesting import MAX_NESTING, nesting
from phylactery_riskgate.domain.policies import parse_policies
from phylactery_riskgate.policy_keys import create_key

from tests.riskgate.test_riskgate_activation import NO_READS, activate, parts, shown, signed, until
from tests.support.forks import Forked

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
    """Waits until the folder was looked at and found as it was twice."""
    watch = gate.riskgate.policies._watch

    async def handled() -> bool:
        return watch._handled == watch._seen is not None and not watch.changed()

    await until(handled)


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
    """Counts from now on how often the folder was looked at."""
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
    """Writes a file in pieces, with pauses long enough to be taken for its end."""
    with path.open("w") as file:
        while text:
            cut = chooser.randint(1, max(1, len(text) // 4))
            file.write(text[:cut])
            file.flush()
            text = text[cut:]
            await asyncio.sleep(chooser.random() / 20)


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
        self.process = Forked("tests.support.crashing", environment=os.environ | settings)

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


async def test_killed_between_commit_and_answer_the_activation_stands(tmp_path, stricter):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    first = await Child(data).serving()
    await first.end(signal.SIGTERM)
    child = await Child(data, "riskgate.activated").serving()
    with pytest.raises(aio.AioRpcError):
        await child.activate(stricter)
    await child.end(signal.SIGKILL)
    again = await Child(data).serving()
    request = riskgate_pb2.EvaluateRequest(
        call=types_pb2.ToolCall(tool=READ[0], tool_call_id="c1", arguments_json=READ[1]), thread_id="t1", run_id="r1"
    )
    answer = await again.decisions.Evaluate(request, timeout=60)
    assert (answer.bundle_revision, answer.decision) == (2, types_pb2.DECISION_BLOCKED)
    assert (await again.activate(stricter)).already_active
    await again.end(signal.SIGTERM)


# ---- hostile bundles ------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(default_bundle_folder(), tmp_path / "hostile"))


def fault(folder: Path) -> BundleError:
    """Answers why a bundle is refused, in time."""
    began = time.process_time()
    with pytest.raises(BundleError) as caught:
        load_bundle(folder)
    assert time.process_time() - began < SECONDS
    assert len(str(caught.value)) < 5_000
    return caught.value


def test_ten_thousand_files_are_too_many(folder):
    for number in range(10_000):
        (folder / "policies" / f"p{number}.cedar").touch()
    assert f"more than {MAX_FILES} files" in fault(folder).message


def test_a_tree_without_an_end_is_too_deep(folder):
    (folder / "a/b/c/d/e/f").mkdir(parents=True)
    assert "deeper" in fault(folder).message
    shutil.rmtree(folder / "a")
    (folder / "loop").symlink_to(folder)
    assert "deeper" in fault(folder).message


def test_a_link_that_leads_out_is_not_followed_and_one_inside_is(folder, tmp_path):
    (tmp_path / "secret").write_text("root:x:0:0")
    (folder / "policies" / "x.cedar").symlink_to(tmp_path / "secret")
    found = fault(folder)
    assert (found.file, "leads out" in found.message, "root:x" in str(found)) == ("policies/x.cedar", True, False)
    (folder / "policies" / "x.cedar").unlink()
    inside = folder / "..data"
    inside.mkdir()
    (folder / "riskgate.yaml").rename(inside / "riskgate.yaml")
    (folder / "riskgate.yaml").symlink_to("..data/riskgate.yaml")
    assert load_bundle(folder).hash == load_bundle(default_bundle_folder()).hash


def test_a_pipe_a_nul_and_a_name_nobody_can_read_are_refused_without_waiting(folder):
    os.mkfifo(folder / "policies" / "pipe.cedar")
    assert "no regular file" in fault(folder).message
    (folder / "policies" / "pipe.cedar").unlink()
    (folder / "policies" / "nul.cedar").write_bytes(b"// a\n// b\x00\n")
    assert (fault(folder).line, "NUL" in fault(folder).message) == (2, True)
    (folder / "policies" / "nul.cedar").unlink()
    (folder / "policies" / "\x1b[31mred.cedar").write_text("")
    assert "\x1b" not in str(fault(folder))


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "[" * 100_000,
        "- " * 100_000 + "a",
        "{a: " * 50_000,
        "!!python/object/apply:os.system ['true']\n",
        "tools:\n" + "  - {name: t}\n" * 60_000,
        "tools: '" + "x" * 1_000_000,
        "? " * 20_000,
        "%TAG ! x\n" * 1_000,
    ],
)
def test_a_hostile_catalog_is_a_sentence_in_time(folder, text):
    (folder / "tools.yaml").write_text(text)
    assert fault(folder).file == "tools.yaml"


def test_too_much_is_refused_before_it_is_read(folder):
    (folder / "policies" / "big.cedar").write_text("// " + "x" * MAX_FILE_BYTES)
    assert f"larger than {MAX_FILE_BYTES}" in fault(folder).message
    (folder / "policies" / "big.cedar").unlink()
    for number in range(4):
        (folder / "policies" / f"p{number}.cedar").write_text("// " + "x" * (MAX_BUNDLE_BYTES // 3))
    assert f"larger than {MAX_BUNDLE_BYTES}" in fault(folder).message


@pytest.mark.parametrize(
    "body",
    [
        "(" * 50_000 + "true" + ")" * 50_000,
        "true" + " || true" * 50_000,
        "true" + " && true" * 50_000,
        "1" + " * 1" * 50_000 + " == 1",
        "[" * 50_000 + "]" * 50_000 + " == []",
        "if true then " * 20_000 + "true" + " else true" * 20_000,
        "{a: " * 50_000 + "1" + "}" * 50_000 + " == 1",
        "context" + ".a" * 50_000,
        "context" + ".contains(1)" * 50_000,
        "context has a" + ".a" * 50_000,
        "!" * 50_000 + "true",
        "(" * 50_000,
        "true" + "\n// (((\n|| true" * 50_000,
    ],
)
def test_a_megabyte_of_policy_ends_in_a_sentence_and_not_in_the_parsers_stack(folder, body):
    statement = '@id("x") @title("x") permit (principal, action, resource) when { ' + body + " };"
    (folder / "policies" / "x.cedar").write_text(statement[: MAX_FILE_BYTES - 1])
    assert fault(folder).file == "policies/x.cedar"


def test_a_megabyte_of_small_policies_is_refused_in_time(folder):
    one = '@id("p{0}") @title("x") permit (principal, action, resource);\n'
    (folder / "policies" / "many.cedar").write_text("".join(one.format(number) for number in range(15_000)))
    assert "a bundle has at most" in fault(folder).message


def test_depth_is_counted_as_the_tree_has_it():
    head = "permit (principal, action, resource) when { "
    flat = head + " || ".join(f'context.args.a == "{number}"' for number in range(90)) + " };"
    assert nesting(flat) < MAX_NESTING
    assert len(parse_policies("f", '@id("a") @title("a") ' + flat)) == 1
    quoted = head + 'context.args.a == "' + "(" * 1_000 + '" };'
    assert nesting(quoted) < 20
    assert nesting(head + "// " + "(" * 1_000 + "\ntrue };") < 20
    assert nesting(head + "[" + "1, " * 5_000 + "1].contains(1) };") < 20
    assert nesting(head + "(" * 200) > MAX_NESTING


@pytest.mark.parametrize(
    "name",
    [
        *("../riskgate.yaml", "/etc/passwd", "policies/../../x.cedar", "a//b", "policies/.hidden.cedar", "x" * 201),
        *("a\x00b", "policies/ñ.cedar", "con fidential", "a/b/c/d/e", "", ".", "policies/"),
    ],
)
def test_a_name_that_leads_elsewhere_is_no_name(name):
    with pytest.raises(BundleError, match="a file is named with"):
        read_parts([(name, b"x")])


async def test_a_hostile_bundle_over_the_wire_is_refused_and_the_service_goes_on(gate, refused, call, stricter):
    petra = gate.person("petra")
    several = [
        ([("../../x", b"")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("riskgate.yaml", b"\xff")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("tools.yaml", b"[" * 900_000)], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([(f"f{number}", b"") for number in range(1_001)], "INVALID_ARGUMENT", "INVALID_REQUEST"),
        ([("a", b""), ("a", b"")], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
        ([("a", b"x" * 5_000_000)], "RESOURCE_EXHAUSTED", ""),
        ([], "INVALID_ARGUMENT", "BUNDLE_INVALID"),
    ]
    for files, code, reason in several:
        sent = [policy_pb2.BundleFile(name=name, content=content) for name, content in files]
        request = policy_pb2.ActivateBundleRequest(files=sent)
        refusal = await refused(petra.policies.ActivateBundle(request, metadata=petra.metadata, timeout=60))
        assert (refusal.code.name, refusal.reason) == (code, reason), files[:1]
    nested = parts(stricter)
    text = b'@id("x") @title("x") permit (principal, action, resource) when { ' + b"(" * 500_000 + b" };"
    nested.append(policy_pb2.BundleFile(name="policies/nested.cedar", content=text))
    answer = await petra.policies.ValidateBundle(
        policy_pb2.ValidateBundleRequest(files=nested), metadata=petra.metadata, timeout=60
    )
    assert (answer.valid, answer.findings[0].file) == (False, "policies/nested.cedar")
    assert (await gate.person("ana").evaluate(call(*READ))).decision == types_pb2.DECISION_ALLOW
    assert (await activate(petra, stricter)).bundle.revision == 2


async def test_validate_tells_findings_cases_and_notes_and_activates_nothing(gate, stricter):
    (stricter / "tests").mkdir()
    case = {"name": "reads", "tool": READ[0], "arguments": {"path": "a"}, "expect": {"decision": "ALLOW"}}
    (stricter / "tests" / "cases.yaml").write_text(yaml.safe_dump({"cases": [case]}))
    petra = gate.person("petra")

    async def validated() -> policy_pb2.ValidateBundleResponse:
        request = policy_pb2.ValidateBundleRequest(files=parts(stricter))
        return await petra.policies.ValidateBundle(request, metadata=petra.metadata, timeout=60)

    answer = await validated()
    assert (answer.valid, answer.revision, answer.hash) == (True, 2, load_bundle(stricter).hash)
    assert [(one.severity, one.message) for one in answer.findings] == [
        (
            policy_pb2.FINDING_SEVERITY_CASE,
            "the case 'reads' failed: decision: BLOCKED instead of ALLOW",
        )
    ]
    (stricter / "policies" / "more.cedar").write_text(NO_READS + NO_READS + "forbid;\n")
    answer = await validated()
    assert (answer.valid, answer.revision) == (False, 0)
    assert [(one.file, one.line) for one in answer.findings] == [
        ("policies/more.cedar", 3),
        ("policies/more.cedar", 2),
    ]
    assert (gate.records(), await live(gate)) == ([], 1)


@pytest.mark.parametrize("method", ["ValidateBundle", "ActivateBundle", "GetBundle"])
async def test_random_and_mutated_messages_of_an_admin_are_answered_clearly(gate, stricter, method):
    raw = gate.channel.unary_unary(f"/phylactery.riskgate.v1.PolicyService/{method}")
    petra, chooser = gate.person("petra"), random.Random(method)
    request = policy_pb2.GetBundleRequest(with_files=True)
    if method != "GetBundle":
        request = policy_pb2.ValidateBundleRequest(files=parts(stricter))
    data = request.SerializeToString()
    for _ in range(60):
        changed = bytearray(data)
        for _ in range(chooser.randint(1, 5)):
            changed[chooser.randrange(len(changed))] = chooser.randrange(256)
        asked = raw(bytes(changed), metadata=petra.metadata, timeout=60)
        assert await asked.code() not in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}, await asked.details()
    assert await live(gate) in {1, 2}


@pytest.mark.slow
async def test_sighup_reaches_the_workers_of_one_service(tmp_path, stricter):
    folder = Path(shutil.copytree(default_bundle_folder(), tmp_path / "served"))
    ready = tmp_path / "ready.json"
    settings = {"RISKGATE_DATA_DIR": str(tmp_path / "data"), "RISKGATE_READY_FILE": str(ready), "RISKGATE_PORT": "0"}
    words = [sys.executable, "-m", "phylactery_riskgate.cli", "serve", "--workers", "2", "--bundle", str(folder)]
    process = await asyncio.to_thread(subprocess.Popen, words, env=os.environ | settings, stdout=subprocess.DEVNULL)

    async def started() -> bool:
        assert process.poll() is None, "it did not start"
        return ready.exists()

    await until(started)
    for one in parts(stricter):
        put(folder, one.name, one.content.decode())
    process.send_signal(signal.SIGHUP)
    async with aio.insecure_channel(f"127.0.0.1:{yaml.safe_load(ready.read_text())['port']}") as channel:
        policies = policy_pb2_grpc.PolicyServiceStub(channel)

        async def taken() -> bool:
            return (await policies.GetBundle(policy_pb2.GetBundleRequest(), timeout=60)).live.revision == 2

        await until(taken)
    process.terminate()
    assert await asyncio.to_thread(process.wait, 60) == 0
