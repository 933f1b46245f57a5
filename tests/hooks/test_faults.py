"""What goes wrong between a host, its hook, the helper and RiskGate: nothing runs, and the text says why."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from phylactery_client.riskgate import RiskGateClient

from tests.support.hooks.host import LIMIT_SECONDS, Answered, Coder, alive, prepared
from tests.support.riskgate.serving import ServedRiskGate

Make = Callable[..., Coder]


def wait_until(check: Callable[[], object], what: str) -> None:
    limit = time.monotonic() + LIMIT_SECONDS
    while not check():
        assert time.monotonic() < limit, f"{what} did not come about"
        time.sleep(0.02)


def quick(coder: Coder, payload: bytes, event: str, seconds: float) -> Answered:
    """Run a hook process whose patience is short."""
    served = f"h.SECONDS = {seconds}; h.run('claude-code', '{event}', {str(coder.folder)!r})"
    words = [sys.executable, "-P", "-c", f"import phylactery_hooks.hook as h; {served}"]
    done = subprocess.run(words, input=payload, capture_output=True, check=False, timeout=LIMIT_SECONDS)
    return Answered(done.returncode, done.stdout.decode(), done.stderr.decode())


def proposal(given: str, session: str = '"session_id": "s"') -> bytes:
    """Return a proposed command as text, which need not be JSON."""
    return (
        f'{{{session}, "hook_event_name": "PreToolUse", "cwd": "/", "tool_name": "Bash", "tool_input": {given}}}'
    ).encode()


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"no JSON",
        b"[]",
        b"{}",
        b'{"hook_event_name": "PreToolUse"}',
        b'{"hook_event_name": "Unheard", "session_id": "s", "cwd": "/"}',
        b'{"hook_event_name": "Stop", "session_id": "s", "cwd": "/"}',
        proposal('"ls"'),
        proposal('{"command": "ls"}', '"session_id": 1'),
        proposal('{"command": "ls"}', '"session_id": "s", "session_id": "t"'),
        proposal('{"command": "ls", "command": "rm x"}'),
        proposal('{"command": "ls", "timeout": NaN}'),
        b"[" * 100_000,
        b"\xff\xfe",
    ],
    ids=range(14),
)
def test_an_event_that_is_not_understood_is_refused(coder: Coder, payload: bytes):
    answer = coder.raw(payload, "PreToolUse")
    assert answer.decision == "refused"
    assert answer.told.startswith("RiskGate: ")


def test_an_event_of_ten_megabytes_is_refused(coder: Coder):
    given = {"file_path": str(coder.workspace / "a"), "content": "x" * 10_000_000}
    answer, _ = coder.proposes("Write", given)
    assert answer.decision == "refused"
    assert "bytes" in answer.told


def test_arguments_that_are_too_large_are_denied(coder: Coder):
    given = {"file_path": str(coder.workspace / "a"), "content": "x" * 2_000_000}
    answer, _ = coder.proposes("Write", given)
    assert answer.decision in {"deny", "refused"}


def test_an_unknown_host_is_refused(coder: Coder):
    assert coder.raw(b"{}", host="emacs").decision == "refused"


def test_a_folder_that_others_may_read_is_refused(tmp_path: Path, code: Path):
    coder = Coder(code, prepared(tmp_path / "hooks", "127.0.0.1:1"))
    coder.folder.chmod(0o755)
    answer = coder.shell("ls")
    assert answer.decision == "refused"
    assert "0700" in answer.told
    assert Coder(code, tmp_path / "nothing").shell("ls").decision == "refused"


def test_nobody_else_reaches_the_helper(coder: Coder):
    coder.shell("ls")
    assert coder.folder.stat().st_mode & 0o777 == 0o700
    for path in coder.folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path.name


@pytest.mark.slow
def test_while_riskgate_is_away_nothing_runs_and_an_end_is_an_end(tmp_path: Path, coder_of: Make):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coder = coder_of(f"127.0.0.1:{free.getsockname()[1]}")
        told = coder.says("Fix the tests")
        assert told.decision == "refused"
        assert "not reachable" in told.told
        answer = coder.shell("ls")
        assert answer.decision == "deny"
        assert "unavailable" in answer.reason
        assert coder.stops().out == "{}\n"


@pytest.mark.slow
def test_a_call_evaluated_before_a_restart_is_redeemed_after_it(own_gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(own_gate.target)
    coder.says("Fix the tests")
    assert coder.shell("pytest -q").decision == "deny"
    own_gate.kill()
    assert coder.shell("pytest -q").decision == "deny"
    own_gate.start()
    (waiting,) = coder.state()["waiting"].values()

    async def approve() -> None:
        async with RiskGateClient(own_gate.target) as client:
            seen = await client.get_approval(waiting["approval_id"])
            await client.approve(seen.id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id)

    asyncio.run(approve())
    answer, call = coder.proposes("Bash", {"command": "pytest -q"})
    assert answer.decision == "allow"
    assert coder.ran("Bash", answer.bound, call, "1 passed").code == 0
    assert own_gate.outcomes(coder.state()["current"]["run_id"]) == [("SUCCEEDED", "")]


def test_a_host_that_kills_its_hook_leaves_the_call_in_doubt(gate: ServedRiskGate, coder: Coder):
    coder.says("Look around")
    run = coder.state()["current"]["run_id"]
    payload = coder.payload("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="toolu_killed")
    request = b"claude-code\nPreToolUse\n\n" + json.dumps(payload).encode()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.connect(str(coder.folder / "helper.sock"))
        killed.sendall(len(request).to_bytes(4, "big") + request)
    wait_until(lambda: gate.outcomes(run), "an outcome")
    assert gate.outcomes(run) == [("IN_DOUBT", "CANCELLED")]
    answer, _ = coder.proposes("Bash", {"command": "ls"}, "toolu_killed")
    assert answer.decision == "deny", "a call that may have run does not run again"


@pytest.mark.slow
def test_a_helper_that_was_killed_is_replaced_and_knows_the_calls(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target)
    coder.says("Fix the tests")
    run = coder.state()["current"]["run_id"]
    answer, call = coder.proposes("Bash", {"command": "touch src/new.py"})
    assert answer.decision == "allow"
    first = coder.helper()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not alive(first), "the end of the helper")
    assert coder.ran("Bash", answer.bound, call, "").out == "{}\n"
    assert coder.helper() != first
    assert gate.outcomes(run) == [("SUCCEEDED", "")]
    assert coder.shell("touch src/other.py").decision == "allow", "the task goes on"


@pytest.mark.slow
def test_of_helpers_that_start_at_once_one_is_left(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target)
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: coder.proposes("Bash", {"command": "ls"}, f"t-{number}")[0], range(6)))
    assert {one.decision for one in answers} == {"allow"}
    found = helpers(coder.folder)
    wait_until(lambda: len(helpers(coder.folder)) == 1, f"the end of all helpers but one of {found}")
    assert helpers(coder.folder) == [coder.helper()]


def helpers(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdigit():
            try:
                if (one / "cwd").readlink() == folder and alive(int(one.name)):
                    found.append(int(one.name))
            except OSError:
                continue
    return found


@pytest.mark.slow
def test_a_helper_ends_when_nothing_comes_and_starts_again(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target, settings={"idle_seconds": 0.1})
    coder.says("Fix the tests")
    first = coder.helper()
    wait_until(lambda: not alive(first), "the end of the helper")
    assert not (coder.folder / "helper.sock").exists()
    assert coder.shell("touch a").decision == "allow", "the next one knows the task"


@pytest.mark.slow
def test_a_hook_does_not_wait_longer_than_its_host(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target)
    coder.says("Look around")
    os.kill(coder.helper(), signal.SIGSTOP)
    try:
        proposal = coder.payload("PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t")
        refused = quick(coder, json.dumps(proposal).encode(), "PreToolUse", 1.0)
        assert refused.decision == "refused"
        assert "in time" in refused.told or "timed out" in refused.told
        ended = quick(coder, json.dumps(coder.payload("Stop")).encode(), "Stop", 1.0)
        assert (ended.code, ended.out) == (0, "{}\n")
    finally:
        os.kill(coder.helper(), signal.SIGCONT)


@pytest.mark.parametrize(
    "answer",
    [
        bytes([0]) + (100_000).to_bytes(4, "big") + b'{"hookSpecificOutput": {"permissionDe',
        bytes([0]) + (4).to_bytes(4, "big") + b"{}\n",
        bytes([0]) + (2).to_bytes(4, "big") + b"{}",
        bytes([0]) + (0).to_bytes(4, "big"),
        bytes([1]) + (3).to_bytes(4, "big") + b"{}\n",
    ],
    ids=range(5),
)
def test_an_answer_that_is_not_whole_is_a_refusal(tmp_path: Path, code: Path, answer: bytes):
    coder = Coder(code, prepared(tmp_path / "hooks", "127.0.0.1:1"))
    with socket.socket(socket.AF_UNIX) as peer:
        peer.bind(str(coder.folder / "helper.sock"))
        peer.listen(8)

        def cut() -> None:
            for _ in range(2):
                served, _address = peer.accept()
                with served, served.makefile("rb") as given:
                    given.read(int.from_bytes(given.read(4), "big"))
                    served.sendall(answer)

        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(cut)
            assert coder.raw(proposal('{"command": "ls"}'), "PreToolUse").decision == "refused"
            ended = coder.raw(proposal('{"command": "ls"}'), "Stop")
            done.result(LIMIT_SECONDS)
    assert (ended.code, ended.out) == (0, "{}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("event", "code_"), [("PreToolUse", 2), ("Stop", 0)])
def test_a_hook_that_is_told_to_end_refuses(tmp_path: Path, code: Path, number: signal.Signals, event: str, code_: int):
    process = Coder(code, prepared(tmp_path / "hooks", "127.0.0.1:1")).process(event)
    try:
        wait_until(lambda: caught(process.pid) & 1 << signal.SIGHUP - 1, "the hook")
        process.send_signal(number)
        out, _ = process.communicate(timeout=LIMIT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == code_
    assert out == (b"" if code_ else b"{}\n")


def caught(number: int) -> int:
    """Return the set of signals that a process handles."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{number}/status").read_text().splitlines())
    return int(lines["SigCgt"], 16)


@pytest.mark.parametrize("option", ["-I", "-P"])
def test_a_helper_is_as_isolated_as_its_hook(tmp_path: Path, option: str):
    seen = "h.os.posix_spawn = lambda program, words, *_, **__: print(*words[1:])"
    found = f"import sys; sys.path[:0] = {sys.path!r}; import phylactery_hooks.hook as h; {seen}; h.start()"
    words = [sys.executable, option, "-c", found]
    done = subprocess.run(words, capture_output=True, check=True, timeout=LIMIT_SECONDS, cwd=tmp_path)
    assert done.stdout.decode().split() == [option, "-m", "phylactery_hooks.helper", "."]


@pytest.mark.slow
def test_settings_that_cannot_be_read_are_a_refusal(tmp_path: Path, code: Path):
    coder = Coder(code, prepared(tmp_path / "hooks", "127.0.0.1:1"))
    (coder.folder / "settings.json").write_text("{")
    answer = quick(coder, json.dumps(coder.payload("Stop")).encode(), "PreToolUse", 4.0)
    assert answer.decision == "refused"


def test_state_that_cannot_be_read_is_forgotten(gate: ServedRiskGate, coder_of: Make):
    coder = coder_of(gate.target)
    (coder.folder / "state.json").write_text('{"sessions": 1}')
    coder.says("Fix the tests")
    assert coder.shell("touch a").decision == "allow"
