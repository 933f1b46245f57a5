"""InspectionService and `riskgate inspect`: the same findings by RPC and command, and no value in the output."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest
from click.testing import Result
from grpc import aio
from phylactery.riskgate.v1 import inspection_pb2, inspection_pb2_grpc
from phylactery_chassis.inspection import FindingKind, inspect
from phylactery_riskgate.api.inspection import MAX_FINDINGS
from phylactery_riskgate.cli import app
from phylactery_riskgate.tasks import inspection
from phylactery_riskgate.tasks.inspection import SMALL_CHARACTERS
from phylactery_riskgate.tasks.requests import MAX_TEXT_BYTES, MAX_TEXTS
from typer.testing import CliRunner

from tests.support.contracts.refusals import refusal_of
from tests.support.effort import assert_within
from tests.support.riskgate import inspection as made

CARD = "4111 1111 1111 1111"
TEXT = f"Señora 👩‍👩‍👧: {CARD}, ana@example.com, password=hunter22; ref 4222222222222"
REDACTED = "Señora 👩‍👩‍👧: «card», «email», password=«password»; ref 4222222222222"


class Inspector:
    """Calls InspectionService as one identity."""

    def __init__(self, gate: Any, name: str = "ana") -> None:
        self.metadata = gate.person(name).metadata
        self.stub = inspection_pb2_grpc.InspectionServiceStub(gate.channel)

    async def inspect(self, text: str, **options: Any) -> inspection_pb2.Inspection:
        request = inspection_pb2.InspectRequest(text=text, options=inspection_pb2.InspectOptions(**options))
        return (await self.stub.Inspect(request, metadata=self.metadata, timeout=60)).inspection

    async def batch(self, texts: list[str], **options: Any) -> list[inspection_pb2.Inspection]:
        request = inspection_pb2.InspectBatchRequest(texts=texts, options=inspection_pb2.InspectOptions(**options))
        return list((await self.stub.InspectBatch(request, metadata=self.metadata, timeout=60)).inspections)


@pytest.fixture
def inspector(gate) -> Inspector:
    return Inspector(gate)


async def test_an_answer_says_what_where_and_how_sure_and_holds_the_text_without_it(inspector):
    answer = await inspector.inspect(TEXT, want_redacted=True)
    assert [inspection_pb2.FindingKind.Name(one.kind) for one in answer.findings] == [
        "FINDING_KIND_CARD",
        "FINDING_KIND_EMAIL",
        "FINDING_KIND_PASSWORD",
    ]
    card, _, password = answer.findings
    assert TEXT[card.start : card.end] == CARD
    assert TEXT[password.start : password.end] == "hunter22"
    assert card.category == inspection_pb2.FINDING_CATEGORY_PERSONAL
    assert password.category == inspection_pb2.FINDING_CATEGORY_SECRET
    assert card.confidence == inspection_pb2.FINDING_CONFIDENCE_HIGH
    assert card.rule_id == "card-groups"
    assert answer.total_findings == 3
    assert answer.redacted_text == REDACTED


async def test_the_found_value_is_nowhere_in_the_answer(inspector):
    answer = await inspector.inspect(TEXT, want_redacted=True, min_confidence=inspection_pb2.FINDING_CONFIDENCE_LOW)
    shown = str(answer) + answer.SerializeToString().decode("utf-8", "replace")
    assert answer.total_findings == 4
    for value in ("4111", "hunter22", "ana@example", "4222222222222"):
        assert value not in shown


async def test_options_narrow_what_is_answered(inspector):
    kinds = [inspection_pb2.FINDING_KIND_EMAIL]
    answer = await inspector.inspect(TEXT, kinds=kinds, want_redacted=True)
    assert [one.kind for one in answer.findings] == kinds
    assert answer.redacted_text == TEXT.replace("ana@example.com", "«email»")
    assert not (await inspector.inspect(TEXT, kinds=kinds)).redacted_text
    high = await inspector.inspect("12345678z", min_confidence=inspection_pb2.FINDING_CONFIDENCE_HIGH)
    assert not high.findings
    assert (await inspector.inspect("12345678z")).total_findings == 1
    assert not (await inspector.inspect("")).findings


async def test_a_batch_answers_each_text_for_itself_in_order(inspector):
    answers = await inspector.batch(["nada", CARD, "", "password=hunter22"], want_redacted=True)
    assert [one.total_findings for one in answers] == [0, 1, 0, 1]
    assert [one.redacted_text for one in answers] == ["nada", "«card»", "", "password=«password»"]


async def test_the_contract_names_every_kind_of_the_domain(inspector):
    names = inspection_pb2.FindingKind.DESCRIPTOR.values_by_name
    assert {name.removeprefix("FINDING_KIND_").lower() for name in names} == {str(kind) for kind in FindingKind} | {
        "unspecified"
    }


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda i: i.inspect("é" * (MAX_TEXT_BYTES // 2 + 1)), "text"),
        (lambda i: i.inspect("x", kinds=[0]), "options.kinds.0"),
        (lambda i: i.inspect("x", kinds=[999]), "options.kinds.0"),
        (lambda i: i.inspect("x", kinds=[1] * 101), "options.kinds"),
        (lambda i: i.inspect("x", min_confidence=9), "options.min_confidence"),
        (lambda i: i.batch([]), "texts"),
        (lambda i: i.batch(["x"] * (MAX_TEXTS + 1)), "texts"),
        (lambda i: i.batch(["x" * (MAX_TEXT_BYTES // 2), "y" * (MAX_TEXT_BYTES // 2 + 1)]), "texts"),
    ],
)
async def test_what_is_out_of_bounds_is_named(inspector, refused, call, field):
    refusal = await refused(call(inspector))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_only_callers_may_ask(gate, refused):
    refusal = await refused(Inspector(gate, "dora").inspect(TEXT))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")
    assert refusal.metadata == {"role": "caller"}


async def test_more_findings_than_an_answer_holds_are_counted_and_redacted(inspector):
    text = "a@b.co " * (MAX_FINDINGS + 5)
    answer = await inspector.inspect(text, want_redacted=True)
    assert (len(answer.findings), answer.total_findings) == (MAX_FINDINGS, MAX_FINDINGS + 5)
    assert answer.redacted_text == "«email» " * (MAX_FINDINGS + 5)


@pytest.mark.slow
async def test_a_long_text_does_not_hold_up_everybody_else(gate, inspector):
    """Other calls go on while long texts are looked at, and no more of those at once than there are threads for."""
    text = "4111 " * 30_000
    long = [asyncio.create_task(inspector.inspect(text)) for _ in range(3)]
    others = 0
    while not all(task.done() for task in long):
        await gate.person("ana").list_keys()
        others += 1
    assert [task.result().total_findings for task in long] == [0] * 3
    assert others >= 5


HOSTILE = ("4111 1111 " * 104_858)[:MAX_TEXT_BYTES]


@pytest.mark.timing
@pytest.mark.parametrize("size", [2_000, MAX_TEXT_BYTES], ids=["small", "large"])
async def test_many_long_texts_of_one_caller_make_no_other_wait_for_all_of_them(gate, inspector, size: int):
    theirs = [asyncio.create_task(inspector.inspect(HOSTILE)) for _ in range(6)]
    await inspector.inspect("so that theirs are under way")
    assert not (await Inspector(gate, "ben").inspect(HOSTILE[:size])).total_findings
    before_it = sum(task.done() for task in theirs)
    assert before_it <= (1 if size < MAX_TEXT_BYTES else 3)
    for task in theirs:
        task.cancel()


COSTLY = "?token=" * 140


@pytest.mark.timing
@pytest.mark.parametrize("batch", [False, True], ids=["one", "batch"])
async def test_hundreds_of_small_hostile_texts_of_one_caller_make_no_other_wait_for_all_of_them(
    gate, inspector, *, batch: bool
):
    def ask() -> Any:
        return inspector.batch([COSTLY[:14]] * 60) if batch else inspector.inspect(COSTLY)

    theirs = [asyncio.create_task(ask()) for _ in range(300)]
    await asyncio.wait(theirs, return_when=asyncio.FIRST_COMPLETED)
    assert (await Inspector(gate, "ben").inspect(f"and {CARD}, " + "please " * 20)).total_findings == 1
    assert sum(task.done() for task in theirs) < 150
    for task in theirs:
        task.cancel()


@pytest.mark.slow
async def test_more_of_a_caller_than_may_wait_are_refused_at_once(inspector, monkeypatch: pytest.MonkeyPatch):
    """The scans are held until every call has arrived: else the first could end before the last is sent."""
    let_go, scan = threading.Event(), inspection._inspected

    def held(*arguments: Any, **options: Any) -> inspection.Inspected:
        assert let_go.wait(60)
        return scan(*arguments, **options)

    monkeypatch.setattr(inspection, "_inspected", held)
    text = "4111 " * inspection.QUEUED_CHARACTERS
    asked = [asyncio.create_task(inspector.inspect(text)) for _ in range(40)]
    ending, refusals = asyncio.as_completed(asked), []
    for _ in range(8):
        with pytest.raises(aio.AioRpcError) as refused:
            await next(ending)
        refusals.append(refusal_of(refused.value))
    assert {(one.code, one.reason) for one in refusals} == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")}
    let_go.set()
    assert [(await one).total_findings for one in ending] == [0] * 32
    assert not (await inspector.inspect(text)).total_findings


def run(*arguments: str, text: str | None = None) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(app, ["inspect", *arguments], input=text)


def test_the_command_says_where_and_never_what_and_its_exit_code_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a.txt").write_text(f"hola\n  {TEXT}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = run("a.txt")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "a.txt:2:17: card (personal, high, card-groups)",
        "a.txt:2:38: email (personal, high, email)",
        "a.txt:2:64: password (secret, high, password)",
    ]
    assert not done.stderr
    clean = run(text="nada\n")
    assert (clean.exit_code, clean.stdout) == (0, "nothing was found\n")


def test_the_command_answers_machines_and_pipes():
    done = run("-", "--json", "--redact", text=TEXT)
    facts = json.loads(done.stdout)
    assert done.exit_code == 1
    assert [(one["kind"], one["start"], one["end"]) for one in facts["findings"]] == [
        (str(one.kind), one.start, one.end) for one in inspect(TEXT)
    ]
    assert (facts["ok"], facts["redacted"]) == (False, REDACTED)
    piped = run("--redact", text=TEXT + "\n")
    assert (piped.exit_code, piped.stdout) == (1, REDACTED + "\n")
    again = run("--redact", text=piped.stdout)
    assert (again.exit_code, again.stdout) == (0, REDACTED + "\n")


@pytest.mark.slow
def test_redacted_text_goes_into_a_pipe_as_it_is_and_speaks_to_no_terminal(tmp_path: Path):
    file = tmp_path / "text"
    file.write_bytes(b"\x1b[1m ana@example.com\x1b[0m\tb\r\n")
    command = [sys.executable, "-m", "phylactery_riskgate.cli", "inspect", "--redact", str(file)]
    piped = subprocess.run(command, capture_output=True, check=False, timeout=100)
    assert (piped.returncode, piped.stdout.decode()) == (1, "\x1b[1m «email»\x1b[0m\tb\r\n")
    reader, screen = pty.openpty()
    shown = subprocess.run(command, stdin=screen, stdout=screen, stderr=screen, check=False, timeout=100)
    os.close(screen)
    assert (shown.returncode, os.read(reader, 65_536).decode()) == (
        1,
        "\\u001b[1m «email»\\u001b[0m\\u0009b\\u000d\r\n",
    )
    os.close(reader)


def test_the_command_can_be_told_what_to_look_for():
    assert run("--kind", "card", text="ana@example.com").exit_code == 0
    assert run("--kind", "card", "--kind", "email", text="ana@example.com").exit_code == 1
    assert run("--min-confidence", "low", text="ref 4222222222222").exit_code == 1
    assert run("--min-confidence", "high", text="12345678z").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [["nowhere.txt"], ["."], ["--kind", "crad"], ["--min-confidence", "sure"], ["bad"]]
)
def test_what_cannot_be_inspected_is_exit_code_two_and_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
):
    (tmp_path / "bad").write_bytes(b"card 4111 1111 1111 1111 \xff")
    monkeypatch.chdir(tmp_path)
    done = run(*arguments, text="")
    assert done.exit_code == 2
    assert done.stderr
    assert isinstance(done.exception, SystemExit)
    assert "4111" not in done.stderr + done.stdout


@pytest.mark.slow
def test_the_same_text_is_inspected_the_same_in_another_process():
    chooser = random.Random("process")
    text = "\n".join(piece(chooser) for _ in range(40) for piece in (*made.NOISE, made.written_card))
    command = [sys.executable, "-m", "phylactery_riskgate.cli", "inspect", "--json"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, timeout=100)
    assert (done.returncode, done.stderr) == (1, b"")
    shown = json.loads(done.stdout)["findings"]
    assert [(one["kind"], one["start"], one["end"], one["rule"]) for one in shown] == [
        (str(one.kind), one.start, one.end, one.rule) for one in inspect(text)
    ]


@pytest.mark.timing
@pytest.mark.parametrize(
    "piece", ["(6", "token\t=\t", 'secret="', '{"password":"', "-----BEGIN PRIVATE KEY-----\n", "0 -4"]
)
def test_the_longest_text_that_is_looked_at_between_other_calls_holds_them_up_for_milliseconds(piece):
    text = (piece * SMALL_CHARACTERS)[:SMALL_CHARACTERS]
    assert_within(0.02, lambda: inspect(text), tries=20)
