"""Replaced content is kept, bounded, per user; undo_write restores it once, and can itself be undone."""

from __future__ import annotations

import asyncio
import errno
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from phylactery_agent.tools.builtin import versions
from phylactery_agent.tools.builtin.files import FileTools
from phylactery_agent.tools.builtin.versions import FileChange, VersionLimits, VersionStore
from phylactery_agent.tools.contract import Invocation, Reconciled, ToolFailedError
from phylactery_agent.tools.named_folders import person_folder
from phylactery_agent.tools.specs import FileInfoArguments, UndoWriteArguments, WriteFileArguments
from phylactery_chassis.util import crashpoints

from tests.support.agent.files import LIMITS, file_tools_in
from tests.support.agent.graph import FakeMemories, FakeOutputs


def call(args: WriteFileArguments | UndoWriteArguments | FileInfoArguments, key: str, user: str = "ana") -> Invocation:
    return Invocation(args, key, FakeOutputs(), FakeMemories(), "acme", user)


def writing(text: str, key: str, path: str = "a.txt", user: str = "ana", *, append: bool = False) -> Invocation:
    return call(WriteFileArguments(path=path, content=text, append=append), key, user)


def undoing(key: str, path: str = "", user: str = "ana") -> Invocation:
    return call(UndoWriteArguments(path=path), key, user)


@pytest.fixture
def files(tmp_path: Path) -> FileTools:
    return file_tools_in(tmp_path)


@pytest.fixture
def box(tmp_path: Path) -> Path:
    return tmp_path / "sandbox"


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def kept(tmp_path: Path, user: str = "ana") -> list[str]:
    """Return what is kept of a user, without the index."""
    folder = person_folder(tmp_path / "versions", "acme", user)
    return sorted(path.read_text() for path in folder.iterdir() if path.name != "changes.json")


def changes(tmp_path: Path, user: str = "ana") -> int:
    return len(VersionStore(tmp_path / "versions", LIMITS).of("acme", user).changes())


async def test_a_replaced_file_comes_back_and_undone_again_the_change_is_back(files: FileTools, box: Path) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    assert json.loads(await files.undo_write(undoing("u1"))) == {"path": "a.txt", "removed": False}
    assert contents(box) == {"a.txt": "one"}
    await files.undo_write(undoing("u2"))
    assert contents(box) == {"a.txt": "two"}


async def test_a_file_that_was_new_goes_with_undo_and_undone_again_it_is_there(files: FileTools, box: Path) -> None:
    await files.write_file(writing("one", "w1"))
    assert json.loads(await files.undo_write(undoing("u1"))) == {"path": "a.txt", "removed": True}
    assert contents(box) == {}
    assert json.loads(await files.undo_write(undoing("u2"))) == {"path": "a.txt", "removed": False}
    assert contents(box) == {"a.txt": "one"}


async def test_an_emptied_and_an_appended_file_come_back(files: FileTools, box: Path) -> None:
    box.joinpath("a.txt").write_text("by hand")
    await files.write_file(writing("", "w1"))
    await files.undo_write(undoing("u1"))
    assert contents(box) == {"a.txt": "by hand"}
    await files.write_file(writing("more", "w2", append=True))
    await files.undo_write(undoing("u2"))
    assert contents(box) == {"a.txt": "by hand"}


async def test_without_a_path_it_is_the_newest_change_and_with_one_the_newest_of_that_file(
    files: FileTools, box: Path
) -> None:
    for key, path in (("w1", "a.txt"), ("w2", "b.txt"), ("w3", "a.txt"), ("w4", "b.txt")):
        await files.write_file(writing(key, key, path))
    assert json.loads(await files.undo_write(undoing("u1", "a.txt")))["path"] == "a.txt"
    assert contents(box) == {"a.txt": "w1", "b.txt": "w4"}
    await files.write_file(writing("w5", "w5", "b.txt"))
    assert json.loads(await files.undo_write(undoing("u2")))["path"] == "b.txt"
    assert contents(box) == {"a.txt": "w1", "b.txt": "w4"}


async def test_without_a_path_it_is_the_newest_change_of_the_same_conversation(files: FileTools, box: Path) -> None:
    here, there = (lambda one, thread=thread: replace(one, thread_id=thread) for thread in ("t1", "t2"))
    await files.write_file(here(writing("one", "w1")))
    await files.write_file(here(writing("two", "w2")))
    await files.write_file(there(writing("agenda", "w3", "agenda.txt")))
    assert json.loads(await files.undo_write(here(undoing("u1"))))["path"] == "a.txt"
    assert contents(box) == {"a.txt": "one", "agenda.txt": "agenda"}
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(replace(undoing("u2"), thread_id="t3"))
    assert json.loads(await files.undo_write(replace(undoing("u3", "agenda.txt"), thread_id="t3")))["removed"]
    assert contents(box) == {"a.txt": "one"}


async def test_changes_that_an_older_version_kept_are_undone_by_their_file(
    files: FileTools, box: Path, tmp_path: Path
) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    index = person_folder(tmp_path / "versions", "acme", "ana") / "changes.json"
    older = [
        {name: value for name, value in one.items() if name != "thread_id"} for one in json.loads(index.read_text())
    ]
    index.write_text(json.dumps(older))
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(replace(undoing("u1"), thread_id="t1"))
    await files.undo_write(replace(undoing("u2", "a.txt"), thread_id="t1"))
    assert contents(box) == {"a.txt": "one"}


async def test_a_write_of_the_same_content_is_no_change(files: FileTools, box: Path, tmp_path: Path) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    await files.write_file(writing("two", "w3"))
    assert changes(tmp_path) == 2
    await files.undo_write(undoing("u1"))
    assert contents(box) == {"a.txt": "one"}


async def test_the_same_key_again_undoes_nothing_again(files: FileTools, box: Path) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    answers = {await files.undo_write(undoing("u1")) for _ in range(3)}
    assert contents(box) == {"a.txt": "one"}
    assert await files.reconcile_undo(undoing("u1")) == Reconciled("done", *answers)
    assert await files.reconcile_undo(undoing("never begun")) == Reconciled("not_done")


async def test_where_nothing_is_left_to_undo_it_says_so(files: FileTools, box: Path) -> None:
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u1"))
    await files.write_file(writing("one", "w1"))
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u2", "other.txt"))
    with pytest.raises(ToolFailedError, match="PATH_OUTSIDE_SANDBOX"):
        await files.undo_write(undoing("u3", "../a.txt"))
    assert contents(box) == {"a.txt": "one"}


async def test_a_version_that_is_gone_or_damaged_is_not_restored(files: FileTools, box: Path, tmp_path: Path) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    (version,) = (
        path for path in person_folder(tmp_path / "versions", "acme", "ana").iterdir() if path.read_text() == "one"
    )
    version.write_text("other")
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u1"))
    version.unlink()
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u2"))
    assert contents(box) == {"a.txt": "two"}


async def test_two_users_undo_their_own_changes_and_never_one_made_on_top(
    files: FileTools, box: Path, tmp_path: Path
) -> None:
    await files.write_file(writing("of ana", "w1"))
    await files.write_file(writing("of ben", "w2", user="ben"))
    assert (kept(tmp_path), kept(tmp_path, "ben")) == ([], ["of ana"])
    with pytest.raises(ToolFailedError, match="CHANGED_SINCE"):
        await files.undo_write(undoing("u1"))
    await files.undo_write(undoing("u2", user="ben"))
    assert contents(box) == {"a.txt": "of ana"}
    await files.undo_write(undoing("u3"))
    assert contents(box) == {}
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u4", user="eve"))


async def test_what_is_kept_is_readable_by_the_agent_alone_and_lies_outside_the_sandbox(
    files: FileTools, box: Path, tmp_path: Path
) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    folder = tmp_path / "versions"
    assert not folder.is_relative_to(box)
    assert folder.stat().st_mode & 0o077 == 0
    files_there = [path for path in folder.rglob("*") if path.is_file()]
    assert files_there
    assert all(path.stat().st_mode & 0o077 == 0 for path in files_there)


async def test_so_many_versions_of_a_file_are_kept_and_no_more(tmp_path: Path) -> None:
    files = file_tools_in(tmp_path, VersionLimits(per_file=3, bytes_per_user=64 * 1024))
    await files.write_file(writing("other", "o1", "b.txt"))
    for number in range(8):
        await files.write_file(writing(f"v{number}", f"w{number}"))
    assert kept(tmp_path) == ["v4", "v5", "v6"]
    assert changes(tmp_path) == 4, "the other file's is kept"
    await files.undo_write(undoing("u1"))
    assert (tmp_path / "sandbox" / "a.txt").read_text() == "v6"


async def test_so_many_bytes_of_a_user_are_kept_each_content_once_and_always_the_newest(tmp_path: Path) -> None:
    files = file_tools_in(tmp_path, VersionLimits(per_file=20, bytes_per_user=1_000))
    for number in range(6):
        await files.write_file(writing(f"{number}" * 400, f"w{number}"))
    assert kept(tmp_path) == ["3" * 400, "4" * 400]
    await files.write_file(writing("x" * 1_000, "w6"))
    await files.write_file(writing("y", "w7"))
    assert kept(tmp_path) == ["x" * 1_000]
    await files.write_file(writing("of ben", "w8", user="ben"))
    assert (kept(tmp_path), kept(tmp_path, "ben")) == (["x" * 1_000], ["y"])


async def test_so_many_changes_of_a_user_are_kept_though_none_of_them_replaced_anything(
    files: FileTools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "MAX_CHANGES", 4)
    for number in range(9):
        await files.write_file(writing("new", f"w{number}", f"f{number}.txt"))
    assert changes(tmp_path) == 4
    await files.undo_write(undoing("u1", "f8.txt"))
    with pytest.raises(ToolFailedError, match="NOTHING_TO_UNDO"):
        await files.undo_write(undoing("u2", "f2.txt"))


async def test_a_user_who_is_forgotten_leaves_nothing_and_others_stay(files: FileTools, tmp_path: Path) -> None:
    store = VersionStore(tmp_path / "versions", LIMITS)
    for user in ("ana", "ben", ".hidden", "ana@example.org"):
        await files.write_file(writing(f"before {user}", f"w1 {user}", user=user))
        await files.write_file(writing(f"after {user}", f"w2 {user}", user=user))
    assert set(store.users()) == {("acme", user) for user in ("ana", "ben", ".hidden", "ana@example.org")}
    store.forget("acme", "ana")
    store.forget("acme", "ana")
    assert set(store.users()) == {("acme", user) for user in ("ben", ".hidden", "ana@example.org")}
    with pytest.raises(ValueError, match="user of a tenant"):
        store.forget("acme", "")


@contextmanager
def at(point: str, act: Callable[[], None]) -> Iterator[None]:
    def hook(reached: str) -> None:
        if reached == point:
            act()

    crashpoints.install(hook)
    try:
        yield
    finally:
        crashpoints.install(None)


class Dies(Exception):
    """Stands for a crash inside one process."""


def _die() -> None:
    raise Dies


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _run_and_die(folder: str, point: str, undo: bool) -> None:
    files = file_tools_in(Path(folder))
    with at(point, _kill):
        asyncio.run(files.undo_write(undoing("k")) if undo else files.write_file(writing("new", "k")))


POINTS = [
    ("agent.write_file.noted", "not_done"),
    ("agent.write_file.kept", "not_done"),
    ("agent.write_file.renamed", "done"),
]


async def killed(tmp_path: Path, point: str, *, undo: bool) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_run_and_die, args=(str(tmp_path), point, undo))
    process.start()
    await asyncio.to_thread(process.join, 60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(("point", "state"), POINTS)
async def test_a_process_killed_while_it_replaces_loses_no_version_and_keeps_none_twice(
    files: FileTools, box: Path, tmp_path: Path, point: str, state: str
) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    await killed(tmp_path, point, undo=False)
    assert (await files.reconcile_write(writing("new", "k"))).state == state
    await files.write_file(writing("new", "k"))
    assert contents(box) == {"a.txt": "new"}
    assert (changes(tmp_path), kept(tmp_path)) == (3, ["one", "two"])
    await files.undo_write(undoing("u1"))
    assert contents(box) == {"a.txt": "two"}


@pytest.mark.slow
@pytest.mark.parametrize(("point", "state"), POINTS)
@pytest.mark.parametrize("removes", [False, True], ids=["restores", "removes"])
async def test_a_process_killed_while_it_undoes_undoes_once(
    files: FileTools, box: Path, tmp_path: Path, point: str, state: str, *, removes: bool
) -> None:
    if not removes:
        await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    after = {} if removes else {"a.txt": "one"}
    await killed(tmp_path, point, undo=True)
    answer = await files.reconcile_undo(undoing("k"))
    assert answer.state == state
    assert json.loads(await files.undo_write(undoing("k"))) == {"path": "a.txt", "removed": removes}
    assert contents(box) == after, "nothing of the attempt is left"
    await files.undo_write(undoing("u2"))
    assert contents(box) == {"a.txt": "two"}


@pytest.mark.parametrize("point", ["agent.write_file.noted", "agent.write_file.kept"])
async def test_a_write_that_never_happened_and_is_never_tried_again_is_not_what_is_undone(
    files: FileTools, box: Path, point: str
) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    with at(point, _die), pytest.raises(Dies):
        await files.write_file(writing("never", "w3"))
    await files.undo_write(undoing("u1"))
    assert contents(box)["a.txt"] == "one"


async def test_a_change_whose_note_went_with_its_thread_can_be_undone_still(
    files: FileTools, box: Path, tmp_path: Path
) -> None:
    await files.write_file(writing("one", "w1"))
    await files.write_file(writing("two", "w2"))
    for note in (tmp_path / "journal").iterdir():
        note.unlink()
    await files.undo_write(undoing("u1"))
    assert contents(box) == {"a.txt": "one"}


async def test_an_undo_that_was_stopped_is_not_done_later(files: FileTools, box: Path) -> None:
    await files.write_file(writing("one", "w1"))
    entered, leave = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(leave.wait(), loop).result(30)

    with at("agent.write_file.kept", wait):
        undo = asyncio.create_task(files.undo_write(undoing("u1")))
        await asyncio.wait_for(entered.wait(), 30)
        undo.cancel()
        with pytest.raises(asyncio.CancelledError):
            await undo
        leave.set()
        assert await files.reconcile_undo(undoing("u1")) == Reconciled("not_done")
    assert contents(box) == {"a.txt": "one"}


async def test_where_no_version_can_be_kept_nothing_is_replaced_and_nothing_is_left(
    files: FileTools, box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await files.write_file(writing("one", "w1"))

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(versions, "write_whole", full)
        with pytest.raises(ToolFailedError, match="ENOSPC"):
            await files.write_file(writing("two", "w2"))
    assert await files.reconcile_write(writing("two", "w2")) == Reconciled("not_done")
    assert contents(box) == {"a.txt": "one"}
    assert changes(tmp_path) == 1
    await files.write_file(writing("two", "w2"))
    assert kept(tmp_path) == ["one"]


async def test_what_a_crash_left_of_a_version_goes_with_the_next_change(files: FileTools, tmp_path: Path) -> None:
    await files.write_file(writing("one", "w1"))
    store = VersionStore(tmp_path / "versions", LIMITS).of("acme", "ana")
    (person_folder(tmp_path / "versions", "acme", "ana") / "orphan").write_text("half of a version")
    store.keep(FileChange("k", "b.txt", "", 0, "other"), None)
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("before", "added", "after"),
    [
        (None, "milk", "milk\n"),
        ("", "milk", "milk\n"),
        ("bread", "milk", "bread\nmilk\n"),
        ("bread\n", "milk", "bread\nmilk\n"),
        ("bread\n", "milk\n", "bread\nmilk\n"),
        ("bread\n\n", "milk\neggs", "bread\n\nmilk\neggs\n"),
        ("bread", "", "bread"),
        (None, "", ""),
    ],
)
async def test_what_is_appended_is_whole_lines(
    files: FileTools, box: Path, before: str | None, added: str, after: str
) -> None:
    if before is not None:
        box.joinpath("a.txt").write_text(before)
    await files.write_file(writing(added, "w1", append=True))
    assert contents(box) == {"a.txt": after}


async def test_a_file_is_told_to_be_there_or_not(files: FileTools, box: Path) -> None:
    async def info(path: str) -> dict[str, object]:
        return json.loads(await files.file_info(call(FileInfoArguments(path=path), "i")))  # type: ignore[no-any-return]

    assert await info("a.txt") == {"path": "a.txt", "exists": False, "size": None, "modified": None}
    assert (await info("nowhere/a.txt"))["exists"] is False
    box.joinpath("a.txt").write_text("niña")
    os.utime(box / "a.txt", (1_800_000_000, 1_800_000_000))
    assert await info("a.txt") == {"path": "a.txt", "exists": True, "size": 5, "modified": "2027-01-15T08:00:00Z"}
    box.joinpath("folder").mkdir()
    box.joinpath("link").symlink_to("/etc/passwd")
    for path, code in (("folder", "NOT_A_FILE"), ("link", "PATH_OUTSIDE_SANDBOX"), ("../a.txt", "PATH_OUTSIDE")):
        with pytest.raises(ToolFailedError, match=code):
            await info(path)
