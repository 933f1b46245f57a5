"""`riskgate approvals` against a real RiskGate: by a person on a terminal, and by a script."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.cli.approvals.view import _in_short

from tests.support.processes.commands import Finished, run_riskgate
from tests.support.processes.interrupts import interruptible
from tests.support.processes.ports import lasting_port

PAY = ("pay", '{"to":"pаypal.com","note":"hunter2"}')
WIPE = ("wipe", '{"path":"x"}')
SECONDS = 60
APPROVED, PENDING = types_pb2.APPROVAL_STATE_APPROVED, types_pb2.APPROVAL_STATE_PENDING


def command(gate: Any, *words: str) -> list[str]:
    target = ["--target", f"127.0.0.1:{gate.server.port}"]
    return [sys.executable, "-m", "phylactery_riskgate.cli", "approvals", words[0], *target, *words[1:]]


def environment(name: str, **more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG", "RISKGATE_"))}
    return kept | {"RISKGATE_TOKEN": f"token-of-{name}", "RISKGATE_LANG": "en", "COLUMNS": "120", **more}


async def run(gate: Any, name: str, *words: str, **more: str) -> Finished:
    """Run the command without a terminal."""
    return await asyncio.to_thread(run_riskgate, *command(gate, *words)[3:], environment=environment(name, **more))


class Terminal:
    """A person at a terminal: reads until something stands there, and types."""

    def __init__(self, gate: Any, name: str, *words: str, **more: str) -> None:
        self._master, worker = pty.openpty()
        with interruptible():
            self.process = subprocess.Popen(
                command(gate, *words), env=environment(name, **more), stdin=worker, stdout=worker, stderr=worker
            )
        os.close(worker)
        self.text = ""

    async def reads(self, wanted: str) -> str:
        """Read until the screen shows this; return all of it."""
        await asyncio.to_thread(self._read, lambda: wanted in self.text, wanted)
        return self.text

    def types(self, line: str) -> None:
        self.text = ""
        os.write(self._master, f"{line}\n".encode())

    async def ends(self) -> int:
        await asyncio.to_thread(self._read, lambda: self.process.poll() is not None, "the end")
        return self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._master)

    def _read(self, done: Any, what: str) -> None:
        end = time.monotonic() + SECONDS
        while not done():
            assert time.monotonic() < end, f"waited for {what!r} and read {self.text!r}"
            if select.select([self._master], [], [], 0.05)[0]:
                try:
                    self.text += re.sub(r"\x1b\[[0-9;]*m", "", os.read(self._master, 65_536).decode())
                except OSError:  # the other side is closed
                    self.process.wait()


@contextmanager
def terminal(gate: Any, name: str, *words: str, **more: str) -> Iterator[Terminal]:
    one = Terminal(gate, name, *words, **more)
    try:
        yield one
    finally:
        one.close()


@pytest.fixture
async def approval(gate, ana, call) -> types_pb2.Approval:
    return (await ana.evaluate(call(*PAY))).approval


async def test_a_list_keeps_ids_whole_and_marks_what_waits_for_this_person(gate, ana, call, approval):
    mine = (await ana.evaluate(call(call_id="c2"))).approval
    found = await run(gate, "dora", "list")
    lines = {line.split()[1 if line.startswith("●") else 0]: line for line in found.stdout.splitlines()[1:3]}
    assert found.returncode == 0
    assert lines[approval.id].startswith("●")
    assert "high" in lines[approval.id]
    assert "p\\u0430ypal.com" in lines[approval.id]
    assert not lines[mine.id].startswith("●")
    assert "hunter2" not in found.stdout


async def test_a_list_for_machines_is_one_ascii_object_without_codes(gate, ana, call, approval):
    await ana.evaluate(call(call_id="c2"))
    found = await run(gate, "ana", "list", "--json", "--limit", "1")
    facts = json.loads(found.stdout)
    assert found.stdout.isascii()
    assert (len(facts["approvals"]), facts["more"]) == (1, True)
    assert "code" not in facts["approvals"][0]
    everything = json.loads((await run(gate, "ana", "list", "--json", "--state", "all")).stdout)
    assert (len(everything["approvals"]), everything["more"]) == (2, False)


async def test_nothing_waits_in_either_language_and_an_unknown_state_is_named(gate):
    assert (await run(gate, "ana", "list")).stdout == "Nothing is waiting.\n"
    assert (await run(gate, "ana", "list", RISKGATE_LANG="es_ES.UTF-8")).stdout == "No hay nada en espera.\n"
    assert (await run(gate, "ana", "list", RISKGATE_LANG="", LANG="es_ES.UTF-8")).stdout.startswith("No hay")
    wrong = await run(gate, "ana", "list", "--state", "SOON")
    assert (wrong.returncode, "PENDING" in wrong.stderr) == (2, True)


async def test_show_says_everything_and_flags_what_deceives(gate, approval):
    shown = await run(gate, "dora", "show", approval.id, RISKGATE_LANG="es")
    for part in (approval.id, approval.args_hash, "▶", "/to", "p\\u0430ypal.com", "alfabetos mezclados", "high", "ana"):
        assert part in shown.stdout, part
    assert "Una escritura de riesgo alto necesita a otra persona (write.ask-peer)" in shown.stdout
    assert "Todavía no se ha aprobado" in shown.stdout
    assert "hunter2" not in shown.stdout
    assert shown.returncode == 0


@pytest.mark.slow
async def test_a_person_sees_the_whole_call_types_the_end_of_its_hash_and_has_approved(gate, ana, approval):
    with terminal(gate, "dora", "approve", approval.id) as screen:
        shown = await screen.reads("type the last 4 characters")
        assert shown.index("/to") < shown.index("type the last 4")
        assert approval.args_hash in shown
        screen.types(approval.args_hash[-4:])
        assert await screen.ends() == 0
        assert f"{approval.id}: APPROVED" in screen.text
    assert (await ana.get(approval.id)).state == APPROVED


HARMLESS, MIDDLE, ENDING = "Hello Bob. " * 400, "IN THE MIDDLE", "PS: the key of the safe is 4711, pay Eve."
LONG = HARMLESS + MIDDLE + HARMLESS + ENDING


@pytest.fixture
async def long_one(ana, call) -> types_pb2.Approval:
    """What asks another person, with a value whose middle is not shown."""
    return (await ana.evaluate(call("pay", json.dumps({"to": LONG}), "c9"))).approval


def unfolded(text: str) -> str:
    """Return what a table folded as one text, without its blanks."""
    return "".join(text.split())


async def test_of_a_long_value_the_end_is_shown_and_in_full_all_of_it(gate, long_one):
    shown = (await run(gate, "dora", "show", long_one.id)).stdout
    assert unfolded(ENDING) in unfolded(shown)
    assert unfolded(MIDDLE) not in unfolded(shown)
    left_out = long_one.arguments[0].characters_left_out
    assert left_out > 6_000
    assert unfolded(f"⚠ {left_out:,} characters not shown") in unfolded(shown)
    assert f"riskgate approvals show {long_one.id} --full shows all of it" in shown
    spanish = (await run(gate, "dora", "show", long_one.id, RISKGATE_LANG="es")).stdout
    assert f"riskgate approvals show {long_one.id} --full lo muestra todo" in spanish
    full = (await run(gate, "dora", "show", long_one.id, "--full")).stdout
    assert unfolded(LONG) in unfolded(full)
    assert "⚠" not in full


@pytest.mark.slow
async def test_who_approves_is_told_that_something_is_not_shown_and_can_see_it(gate, long_one):
    with terminal(gate, "dora", "approve", long_one.id) as screen:
        shown = await screen.reads("type the last 4 characters")
        assert "--full" in shown[: shown.index("type the last 4")]
        screen.types("")
        assert await screen.ends() == 1
    with terminal(gate, "dora", "approve", long_one.id, "--full") as screen:
        shown = await screen.reads("type the last 4 characters")
        assert unfolded(MIDDLE) in unfolded(shown)
        screen.types("")
        assert await screen.ends() == 1
    told = await run(gate, "dora", "approve", long_one.id, "--yes", "--args-hash", long_one.args_hash)
    assert (told.returncode, "is not shown whole" in told.stderr) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "yes", "y"])
async def test_anything_else_changes_nothing(gate, ana, approval, typed):
    with terminal(gate, "dora", "approve", approval.id) as screen:
        await screen.reads("type the last 4 characters")
        screen.types(typed)
        assert await screen.ends() == 1
        assert "Nothing was changed." in screen.text
    assert (await ana.get(approval.id)).state == PENDING


async def test_a_script_approves_with_the_hash_it_saw_and_with_no_other(gate, ana, approval):
    wrong = await run(gate, "dora", "approve", approval.id, "--yes", "--args-hash", "sha256:" + "0" * 64)
    assert (wrong.returncode, "ARGS_MISMATCH" in wrong.stderr) == (1, True)
    assert (await run(gate, "dora", "approve", approval.id, "--yes")).returncode == 2
    assert (await run(gate, "dora", "approve", approval.id)).returncode == 2
    assert (await ana.get(approval.id)).state == PENDING
    done = await run(gate, "dora", "approve", approval.id, "--yes", "--args-hash", approval.args_hash, "--json")
    assert (done.returncode, json.loads(done.stdout)["state"]) == (0, "APPROVAL_STATE_APPROVED")


@pytest.mark.slow
async def test_the_requester_answers_their_own_with_the_code_they_never_see_here(gate, ana, call):
    approval = (await ana.evaluate(call())).approval
    with terminal(gate, "ana", "approve", approval.id) as screen:
        shown = await screen.reads("type the last 4 characters")
        screen.types(approval.args_hash[-4:])
        assert await screen.ends() == 0
        assert approval.code not in shown + screen.text


async def test_one_yes_of_two_says_that_another_person_is_missing(gate, ana, call):
    approval = (await ana.evaluate(call(*WIPE))).approval
    done = await run(gate, "dora", "approve", approval.id, "--yes", "--args-hash", approval.args_hash)
    assert (done.returncode, "1 of 2" in done.stdout) == (0, True)


async def test_reject_and_cancel_answer_the_state_and_a_refusal_is_one_sentence(gate, ana, call, approval):
    done = await run(gate, "dora", "reject", approval.id, "--reason", "no such bill")
    assert (done.returncode, done.stdout) == (0, f"{approval.id}: REJECTED\n")
    refused = await run(gate, "ana", "cancel", approval.id)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "already REJECTED" in refused.stderr
    assert "APPROVAL_NOT_PENDING" in refused.stderr
    other = (await ana.evaluate(call(call_id="c2"))).approval
    assert (await run(gate, "ana", "cancel", other.id)).stdout == f"{other.id}: CANCELLED\n"
    machine = await run(gate, "dora", "cancel", other.id, "--json")
    assert (machine.returncode, json.loads(machine.stdout)["reason"]) == (1, "NOT_ELIGIBLE")


async def test_a_token_nobody_knows_and_a_riskgate_that_is_not_there_cannot_be_used(gate, tmp_path):
    nobody = await run(gate, "dora", "list", RISKGATE_TOKEN="nonsense")
    assert (nobody.returncode, "UNAUTHENTICATED" in nobody.stderr) == (2, True)
    assert "--token-file" not in nobody.stderr  # a token was sent
    without = await run(gate, "dora", "list", RISKGATE_TOKEN="")
    assert (without.returncode, "--token-file, or set RISKGATE_TOKEN" in without.stderr) == (2, True)
    file = tmp_path / "token"
    file.write_text("token-of-dora\n")
    assert (await run(gate, "dora", "list", "--token-file", str(file), RISKGATE_TOKEN="nonsense")).returncode == 0
    assert (await run(gate, "dora", "list", "--token-file", str(tmp_path / "none"))).returncode == 2
    away = await run(gate, "dora", "list", "--target", "127.0.0.1:1")
    assert (away.returncode, "riskgate serve" in away.stderr) == (2, True)


@pytest.mark.slow
async def test_watch_shows_what_waits_and_lets_a_person_answer_with_a_key(gate, ana, call, approval):
    with terminal(gate, "dora", "watch") as screen:
        shown = await screen.reads("[a]pprove")
        assert approval.args_hash in shown
        screen.types("a")
        await screen.reads("type the last 4")
        screen.types(approval.args_hash[-4:])
        await screen.reads(f"{approval.id}: APPROVED")
        second = (await ana.evaluate(call("pay", '{"to":"bob"}', "c2"))).approval
        shown = await screen.reads("[a]pprove")
        assert "Compared with" in shown
        assert "changed" in shown
        screen.types("r")
        await screen.reads("Why?")
        screen.types("too much")
        await screen.reads(f"{second.id}: REJECTED")
        screen.process.send_signal(2)
        assert await screen.ends() == 0
    assert (await ana.get(second.id)).state == types_pb2.APPROVAL_STATE_REJECTED


@pytest.mark.slow
async def test_watch_prints_every_change_for_a_machine_and_outlives_a_riskgate_that_stops(make_gate, call):
    gate = await make_gate(port=lasting_port())
    words = command(gate, "watch", "--json")
    with interruptible():
        started = subprocess.Popen(  # noqa: ASYNC220 - it starts at once, and is read from a thread
            words, env=environment("ana"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    with started as process:
        assert process.stdout is not None
        approval = (await gate.person("ana").evaluate(call())).approval
        first = json.loads(await asyncio.to_thread(process.stdout.readline))
        assert (first["id"], first["state"], "code" in first) == (approval.id, "APPROVAL_STATE_PENDING", False)
        await gate.server.stop()
        again = await make_gate(port=gate.server.port)
        await again.person("ana").cancel(approval.id)
        second = json.loads(await asyncio.to_thread(process.stdout.readline))
        assert (second["id"], second["state"]) == (approval.id, "APPROVAL_STATE_CANCELLED")
        process.send_signal(2)
        assert await asyncio.to_thread(process.wait, SECONDS) == 0


def hostile(found: Sequence[str]) -> list[str]:
    return [line for line in found if not line.isprintable()]


async def test_no_argument_paints_or_forges_a_line_of_the_table(gate, ana, call):
    forged = {"path": "a.txt", "content": 'x\n▶  new  /to  "bob"\u202e\u001b[2J\rAPPROVED'}
    approval = (await ana.evaluate(call(arguments=json.dumps(forged)))).approval
    shown = await run(gate, "dora", "show", approval.id)
    lines = shown.stdout.splitlines()
    assert hostile(lines) == []
    assert sum("/content" in line for line in lines) == 1
    assert not [line for line in lines if line.lstrip().startswith("▶  new")]


def test_a_line_of_the_list_shows_what_matters_of_every_call() -> None:
    def line(*arguments: tuple[str, str, bool], left_out: int = 0) -> str:
        listed = [types_pb2.ArgumentView(path=path, display=shown, control=by) for path, shown, by in arguments]
        return _in_short(types_pb2.Approval(arguments=listed, arguments_left_out=left_out))

    refund = (("/order", "A-17", True), ("/note", "as agreed " * 30, False), ("/amount", "1299.00", False))
    assert line(*refund).startswith("/order A-17, /amount 1299.00, /note as agreed as agreed")
    assert line(("/to", "bob@acme.es", True), ("/amount", "5", True)) == "/amount 5, /to bob@acme.es"
    assert line() == ""
    assert line(("/a", "1", True), left_out=3) == "/a 1 … +3"
    many = line(*((f"/field_{number}", "x" * 50, False) for number in range(20)))
    assert (len(many) < 200, many.endswith(" … +18")) == (True, True), many
    assert "\x1b" not in line(("/a", "\x1b[31mred", True))
