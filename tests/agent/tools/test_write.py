"""write_file takes effect once per key: when killed anywhere, raced, timed out, or retried."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.journal import JournalUnavailableError
from phylactery_agent.tools.contract import EffectUnknownError, Invocation, Reconciled, ToolFailedError
from phylactery_agent.tools.specs import UndoWriteArguments, WriteFileArguments
from phylactery_chassis.util import crashpoints

from tests.support.agent.files import file_tools, file_tools_in
from tests.support.agent.graph import FakeMemories, FakeOutputs


def appending(text: str = "+", key: str = "ek_1", path: str = "a.txt", *, append: bool = True) -> Invocation:
    return Invocation(
        WriteFileArguments(path=path, content=text, append=append), key, FakeOutputs(), FakeMemories(), "acme", "ana"
    )


def content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def put(path: Path, text: str) -> None:
    path.write_text(text)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def files(tmp_path: Path) -> FileTools:
    return file_tools_in(tmp_path)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "sandbox" / "a.txt"


async def test_a_new_file_is_written_and_nothing_else_is_left(files: FileTools, target: Path) -> None:
    assert await files.write_file(appending("hola", append=False)) == "a.txt"
    assert content(target) == "hola"
    assert names(target.parent) == ["a.txt"]


async def test_writing_replaces_and_appending_adds(files: FileTools, target: Path) -> None:
    await files.write_file(appending("one", "ek_1", append=False))
    await files.write_file(appending("two", "ek_2", append=False))
    await files.write_file(appending("+three", "ek_3"))
    assert content(target) == "two\n+three\n"


async def test_the_same_key_again_writes_nothing_again(files: FileTools, target: Path) -> None:
    for _ in range(3):
        await files.write_file(appending())
    assert content(target) == "+\n"


async def test_the_same_key_again_writes_nothing_even_after_the_file_went_back(files: FileTools, target: Path) -> None:
    await files.write_file(appending())
    put(target, "")
    await files.write_file(appending())
    assert content(target) == ""


async def test_another_key_is_another_effect(files: FileTools, target: Path) -> None:
    await files.write_file(appending(key="ek_1"))
    await files.write_file(appending(key="ek_2"))
    assert content(target) == "+\n+\n"


async def test_many_writers_at_once_lose_nothing(files: FileTools, target: Path) -> None:
    await asyncio.gather(*(files.write_file(appending(key=f"ek_{number % 8}")) for number in range(24)))
    assert content(target) == "+\n" * 8


@pytest.mark.parametrize("append", [True, False])
async def test_what_others_write_in_the_last_moment_stays(files: FileTools, target: Path, append: bool) -> None:
    put(target, "one\n")

    def others(reached: str) -> None:
        if reached == "agent.write_file.kept":
            put(target, "one\ntwo\n")

    crashpoints.install(others)
    try:
        with pytest.raises(ToolFailedError, match="CHANGED_SINCE"):
            await files.write_file(appending("three", append=append))
    finally:
        crashpoints.install(None)
    assert content(target) == "one\ntwo\n"
    assert names(target.parent) == ["a.txt"]
    await files.write_file(appending("three"))
    assert content(target) == "one\ntwo\nthree\n"


async def test_nothing_begun_is_reconciled_as_not_done(files: FileTools) -> None:
    assert await files.reconcile_write(appending()) == Reconciled("not_done")


async def test_what_is_done_is_reconciled_as_done(files: FileTools) -> None:
    await files.write_file(appending())
    assert await files.reconcile_write(appending()) == Reconciled("done", "a.txt")


def _write_and_die(folder: str, point: str) -> None:
    def hook(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoints.install(hook)
    files = file_tools_in(Path(folder))
    asyncio.run(files.write_file(appending()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "state"),
    [
        ("agent.write_file.noted", "not_done"),
        ("agent.write_file.kept", "not_done"),
        ("agent.write_file.renamed", "done"),
    ],
)
async def test_a_process_killed_around_the_rename_leaves_an_effect_that_is_known_and_counts_once(
    files: FileTools, target: Path, tmp_path: Path, point: str, state: Literal["done", "not_done"]
) -> None:
    put(target, "before")
    process = multiprocessing.get_context("spawn").Process(target=_write_and_die, args=(str(tmp_path), point))
    process.start()
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == -signal.SIGKILL
    assert (await files.reconcile_write(appending())).state == state
    await files.write_file(appending())
    assert content(target) == "before\n+\n"
    assert names(target.parent) == ["a.txt"]


class Dies(Exception):
    """Stands for a crash inside one process."""


def _die_at(point: str) -> None:
    def hook(reached: str) -> None:
        if reached == point:
            raise Dies

    crashpoints.install(hook)


async def test_a_second_crash_before_the_rename_still_counts_once(files: FileTools, target: Path) -> None:
    try:
        for _ in range(3):
            _die_at("agent.write_file.noted")
            with pytest.raises(Dies):
                await files.write_file(appending())
    finally:
        crashpoints.install(None)
    assert content(target) is None
    await files.write_file(appending())
    assert content(target) == "+\n"


async def test_an_append_by_another_run_between_crash_and_recovery_is_kept(files: FileTools, target: Path) -> None:
    try:
        _die_at("agent.write_file.noted")
        with pytest.raises(Dies):
            await files.write_file(appending("one", "ek_1"))
    finally:
        crashpoints.install(None)
    await files.write_file(appending("two", "ek_2"))
    await files.write_file(appending("one", "ek_1"))
    assert content(target) == "two\none\n"


async def test_a_file_changed_after_an_unfinished_note_cannot_be_judged(files: FileTools, target: Path) -> None:
    try:
        _die_at("agent.write_file.renamed")
        with pytest.raises(Dies):
            await files.write_file(appending())
    finally:
        crashpoints.install(None)
    put(target, "somebody else")
    assert await files.reconcile_write(appending()) == Reconciled("unknown")
    with pytest.raises(EffectUnknownError):
        await files.write_file(appending())
    assert content(target) == "somebody else"


async def test_a_write_cancelled_before_its_rename_never_happens_later(files: FileTools, target: Path) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hook(reached: str) -> None:
        if reached == "agent.write_file.noted":
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(30)

    crashpoints.install(hook)
    try:
        writing = asyncio.create_task(files.write_file(appending()))
        await asyncio.wait_for(entered.wait(), 30)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        leave.set()
        assert await files.reconcile_write(appending()) == Reconciled("not_done")
    finally:
        crashpoints.install(None)
    assert content(target) is None
    assert names(target.parent) == []


async def test_content_that_is_no_unicode_text_is_refused(files: FileTools, target: Path) -> None:
    args = WriteFileArguments.model_construct(path="a.txt", content="\ud800", append=False)
    with pytest.raises(ToolFailedError, match="NOT_UTF8"):
        await files.write_file(Invocation(args, "ek_1", FakeOutputs(), FakeMemories(), "acme", "ana"))
    assert content(target) is None


async def test_a_folder_that_vanished_cannot_be_judged(files: FileTools) -> None:
    assert await files.reconcile_write(appending(path="gone/a.txt")) == Reconciled("unknown")


def _gone(journal: Path) -> None:
    journal.rename(journal.with_name("elsewhere"))


def _no_folder(journal: Path) -> None:
    _gone(journal)
    journal.touch()


@pytest.mark.parametrize("breaks", [_gone, _no_folder])
async def test_a_write_that_cannot_be_noted_has_failed_and_changed_nothing(
    files: FileTools, target: Path, tmp_path: Path, breaks: Callable[[Path], None]
) -> None:
    put(target, "before")
    breaks(tmp_path / "journal")
    with pytest.raises(ToolFailedError, match="NOT_NOTED"):
        await files.write_file(appending())
    undo = Invocation(UndoWriteArguments(path="a.txt"), "ek_2", FakeOutputs(), FakeMemories(), "acme", "ana")
    with pytest.raises(ToolFailedError, match="NOT_NOTED"):
        await files.undo_write(undo)
    assert content(target) == "before"
    assert names(target.parent) == ["a.txt"]


async def test_a_journal_that_is_gone_does_not_say_that_nothing_happened(
    files: FileTools, target: Path, tmp_path: Path
) -> None:
    await files.write_file(appending())
    _gone(tmp_path / "journal")
    undo = Invocation(UndoWriteArguments(path="a.txt"), "ek_1", FakeOutputs(), FakeMemories(), "acme", "ana")
    for reconcile, asked in ((files.reconcile_write, appending()), (files.reconcile_undo, undo)):
        with pytest.raises(JournalUnavailableError):
            await reconcile(asked)


async def test_a_write_that_cannot_be_noted_as_done_is_done_and_stays_known(
    files: FileTools, target: Path, tmp_path: Path
) -> None:
    journal, aside = tmp_path / "journal", tmp_path / "aside"

    def hook(point: str) -> None:
        if point == "agent.write_file.renamed":
            journal.rename(aside)

    crashpoints.install(hook)
    try:
        assert await files.write_file(appending()) == "a.txt"
    finally:
        crashpoints.install(None)
    aside.rename(journal)
    assert await files.reconcile_write(appending()) == Reconciled("done", "a.txt")
    await files.write_file(appending())
    assert content(target) == "+\n"


async def test_a_fault_of_the_disk_before_the_rename_is_a_failure_without_effect(
    files: FileTools, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "versions").rmdir()
    (tmp_path / "versions").touch()
    with pytest.raises(ToolFailedError, match="IO_ERROR"):
        await files.write_file(appending())
    assert content(target) is None
    assert names(target.parent) == []
    assert await files.reconcile_write(appending()) == Reconciled("not_done")


async def test_read_output_says_which_range_it_answers_and_why_it_cannot(tmp_path: Path) -> None:
    from phylactery_agent.tools.specs import ReadOutputArguments

    tool = file_tools(tmp_path / "s", tmp_path / "j")["read_output"]
    outputs = FakeOutputs({"out_1": "0123456789"})
    known, unknown = (ReadOutputArguments(pointer=pointer, offset=2, limit=3) for pointer in ("out_1", "out_2"))
    assert await tool.run(Invocation(known, "ek", outputs, FakeMemories(), "acme", "ana")) == "[2-5 / 10]\n234"
    with pytest.raises(ToolFailedError, match="OUTPUT_NOT_FOUND"):
        await tool.run(Invocation(unknown, "ek", outputs, FakeMemories(), "acme", "ana"))
    outputs.available = False
    with pytest.raises(ToolFailedError, match="MEMORY_UNAVAILABLE"):
        await tool.run(Invocation(known, "ek", outputs, FakeMemories(), "acme", "ana"))
