"""The file tools read_file, file_info, write_file and undo_write. A change happens once, even if the process is killed.

Order of a change: temporary file durable → note durable → previous version durable → rename (the effect) → folder
durable → note marked done. A failure before the rename has no effect, even if the journal itself cannot be written: a
change that could not be noted did not begin. The temporary file carries the effect's key in its name, so its presence
after a crash means that the rename did not happen. A change that removes the file renames the file to that name, so in
that case its presence means that the rename did happen.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar

import rfc8785
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.ports import NO_FILE, UNHASHED, DoneEffect, EffectState
from phylactery_agent.tools.builtin.journal import EffectJournal, JournalNote, JournalUnavailableError
from phylactery_agent.tools.builtin.sandbox import (
    RESERVED_PREFIX,
    Sandbox,
    alike,
    in_nfc,
    is_there,
    modified_at,
    split_path,
)
from phylactery_agent.tools.builtin.undo import part_key
from phylactery_agent.tools.builtin.versions import FileChange, FileVersions, VersionStore, sha256
from phylactery_agent.tools.contract import (
    EffectUnknownError,
    Invocation,
    Reconciled,
    Restored,
    ToolFailedError,
    arguments_of,
)
from phylactery_agent.tools.specs import (
    READ_FILE,
    UNDO_WRITE,
    WRITE_FILE,
    FileInfoArguments,
    ReadFileArguments,
    UndoWriteArguments,
    WriteFileArguments,
)

T = TypeVar("T")
WriteState = Literal["done", "not_done", "unknown"]
_PREFIX: Final = "sha256:"
_CHANGING: Final = frozenset({WRITE_FILE.name, UNDO_WRITE.name})
_NOT_THERE: Final = "not there"
_log = get_logger("files")


class _Commit:
    """The point of the effect: after close() it can no longer happen, so a timeout leaves no late write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self.may_have_come = False
        """Whether a fault from now on leaves open what happened, in this attempt or in an earlier one."""

    @contextmanager
    def moment(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise ToolFailedError("TIMEOUT", "the write was stopped before it happened")
            self.may_have_come = True
            yield

    def close(self) -> None:
        with self._lock:
            self._closed = True


@dataclass(frozen=True, slots=True)
class _Effect:
    """One effect on files: its key, its conversation, the user's versions, and its commit point."""

    key: str
    thread_id: str
    versions: FileVersions
    commit: _Commit
    must_keep: bool = False
    """Whether the change must not happen unless what it replaces is kept."""


class FileTools:
    """The file tools over one sandbox, with one journal and its users' versions."""

    def __init__(self, sandbox: Sandbox, journal: EffectJournal, versions: VersionStore) -> None:
        self._sandbox, self._journal, self._versions = sandbox, journal, versions

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox whose files these are."""
        return self._sandbox

    async def read_file(self, invocation: Invocation) -> str:
        """Return a file's text.

        Raises:
            ToolFailedError: NOT_FOUND, NOT_UTF8, or a code of Sandbox.
        """
        args = arguments_of(invocation, ReadFileArguments)
        return await asyncio.to_thread(self._read, args.path)

    async def file_info(self, invocation: Invocation) -> str:
        """Return whether a file exists, its size in bytes and the time of its last change.

        Raises:
            ToolFailedError: NOT_A_FILE, or a code of Sandbox.
        """
        args = arguments_of(invocation, FileInfoArguments)
        return await asyncio.to_thread(file_info, self._sandbox, args.path)

    async def write_file(self, invocation: Invocation) -> str:
        """Write or append, once per effect key, and return the path.

        Raises:
            ToolFailedError: FILE_TOO_LARGE, NOT_FOUND for a missing folder, CHANGED_SINCE if the file is not what the
                run knows, REPLACES_UNKNOWN if that was not recorded, NAME_ALIKE for a new name that reads as another
                one in the folder, TIMEOUT, NOT_NOTED, IO_ERROR, or a code of Sandbox.
            EffectUnknownError: The outcome of an earlier attempt can no longer be determined.
        """
        args = arguments_of(invocation, WriteFileArguments)
        return await self._done_once(invocation, lambda effect: self._write(args, invocation, effect))

    async def undo_write(self, invocation: Invocation) -> str:
        """Restore what the user's newest change replaced, once per effect key.

        Return the path and the file's new state.

        Raises:
            ToolFailedError: NOTHING_TO_UNDO, CHANGED_SINCE, TIMEOUT, NOT_NOTED, IO_ERROR, or a code of Sandbox.
            EffectUnknownError: The outcome of an earlier attempt can no longer be determined.
        """
        args = arguments_of(invocation, UndoWriteArguments)
        undone = await self._done_once(invocation, lambda effect: self._undo(args.path, effect))
        await self._note_undone(args, invocation)
        return undone

    async def restore_written(self, invocation: Invocation, written: DoneEffect) -> Restored:
        """Restore what one write replaced, once per key of the part of an undo.

        Raises:
            ToolFailedError: CHANGED_SINCE, UNDO_GONE if no earlier version is kept any more, UNDO_LOST if it is and
                cannot be read, TIMEOUT, NOT_NOTED, IO_ERROR, or a code of Sandbox.
            EffectUnknownError: The outcome of an earlier attempt can no longer be determined.
        """
        note, there = await self._done_once(invocation, lambda effect: self._take_back(written.effect_key, effect))
        return Restored(note.path, removed=not note.after, check=note.after if there else _NOT_THERE)

    async def is_restored(self, _invocation: Invocation, _written: DoneEffect, restored: Restored) -> bool:
        """Return True if the file had the content that was restored, as it was read while nothing else could write."""
        return restored.check != _NOT_THERE

    async def reconcile_write(self, invocation: Invocation) -> Reconciled:
        """Return whether the write under this key happened."""
        args = arguments_of(invocation, WriteFileArguments)
        state = await asyncio.to_thread(self._judge_alone, args.path, invocation.effect_key)
        return Reconciled(state, args.path if state == "done" else "")

    async def reconcile_undo(self, invocation: Invocation) -> Reconciled:
        """Return whether the undo under this key happened; only its note records which file it concerned."""
        note = await asyncio.to_thread(self._journal.read, invocation.effect_key)
        if note is None:
            return Reconciled("not_done")
        state = await asyncio.to_thread(self._judge_alone, note.path, invocation.effect_key)
        if state == "done":
            await self._note_undone(arguments_of(invocation, UndoWriteArguments), invocation)
        return Reconciled(state, _undone(note) if state == "done" else "")

    async def _note_undone(self, args: UndoWriteArguments, invocation: Invocation) -> None:
        """Note which effect this undo took back: it stands no more, so no later undo means it."""
        if invocation.undoing is None:
            return
        undone_key = await asyncio.to_thread(self._undone_by, args, invocation)
        if undone_key:
            await invocation.undoing.note_undone(undone_key, key=invocation.effect_key)

    def _undone_by(self, args: UndoWriteArguments, invocation: Invocation) -> str:
        """Return the key of the change that an undo which is done took back; empty if it is not kept any more."""
        changes = self._versions.of(invocation.tenant, invocation.user_id).changes()
        own = next((one for one in changes if one.effect_key == invocation.effect_key), None)
        if own is None:
            return ""
        for one in reversed(changes[: changes.index(own)]):
            is_meant = in_nfc(one.path) == in_nfc(own.path) and (args.path or one.thread_id == own.thread_id)
            if is_meant and (one.before, one.after) == (own.after, own.before):
                return one.effect_key
        return ""

    async def _done_once(self, invocation: Invocation, work: Callable[[_Effect], T]) -> T:
        versions = self._versions.of(invocation.tenant, invocation.user_id)
        effect = _Effect(invocation.effect_key, invocation.thread_id, versions, _Commit(), invocation.low_stakes)
        try:
            return await asyncio.to_thread(_attempted, work, effect)
        except asyncio.CancelledError:
            effect.commit.close()  # the thread cannot be stopped, but its rename can
            raise

    def _read(self, path: str) -> str:
        with self._sandbox.parent(path) as (folder, name):
            data = self._sandbox.read_bytes(folder, name)
        if data is None:
            raise ToolFailedError("NOT_FOUND", "there is no such file or folder")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolFailedError("NOT_UTF8", "the file is not UTF-8 text") from error

    def _write(self, args: WriteFileArguments, invocation: Invocation, effect: _Effect) -> str:
        with self._journal.exclusive(), self._sandbox.parent(args.path, writes=True) as (folder, name):
            if self._is_to_be_done(folder, name, effect):
                before = self._sandbox.read_bytes(folder, name)
                try:
                    self._require_meant(args, invocation, before, alike(folder, name))
                except ToolFailedError:
                    self._forget(folder, effect)  # what an attempt that died left behind
                    raise
                self._change(folder, name, args.path, before, self._content(args, before), effect)
        return args.path

    def _require_meant(
        self, args: WriteFileArguments, invocation: Invocation, before: bytes | None, other: str
    ) -> None:
        """Raise ToolFailedError CHANGED_SINCE if a call would replace a version that its run does not know.

        Raise REPLACES_UNKNOWN if it would replace any and was proposed by a version that did not record which, and
        NAME_ALIKE if the file is new and there is an ``other`` whose name reads alike.
        """
        if other:
            raise ToolFailedError("NAME_ALIKE", f"there is another one that reads alike: {other!a}")
        if args.append or not invocation.content_hash:
            return
        if invocation.content_hash == UNHASHED:
            if before is not None:
                raise ToolFailedError("REPLACES_UNKNOWN", "which version of the file is replaced was not recorded")
        elif sha256(before) not in self._known(args, invocation):
            raise _changed_since()

    def _known(self, args: WriteFileArguments, invocation: Invocation) -> Collection[str]:
        """Return the SHA-256 of each version of a file that the run has read or written, "" where there was no file.

        A run that did neither knows the version that was there when the call was proposed. Anything else is what others
        wrote meanwhile, and would be lost unseen.
        """
        reading = _PREFIX + sha256(rfc8785.dumps({"path": args.path}))
        changes = self._versions.of(invocation.tenant, invocation.user_id).changes()
        known = set()
        for one in invocation.calls:
            if one.state != EffectState.FINISHED or one.status == "error":
                continue
            if one.tool == READ_FILE.name and one.args_hash == reading and one.output_hash:
                known.add(one.output_hash.removeprefix(_PREFIX))
            elif one.tool in _CHANGING and one.effect_key != invocation.effect_key:
                note = self._journal.read(one.effect_key)
                if note is not None and in_nfc(note.path) == in_nfc(args.path):
                    known.add(note.after)
                # an undo of all that a turn did changes each file under a key of its own
                parts = (change for change in changes if change.effect_key.startswith(part_key(one.effect_key, "")))
                known.update(part.after for part in parts if in_nfc(part.path) == in_nfc(args.path))
        return known or {invocation.content_hash.removeprefix(NO_FILE)}

    def _content(self, args: WriteFileArguments, before: bytes | None) -> bytes:
        try:
            content = args.content.encode()
        except UnicodeEncodeError as error:
            raise ToolFailedError("NOT_UTF8", "the content is not valid Unicode") from error
        after = _with_line(before or b"", content) if args.append else content
        if len(after) > self._sandbox.max_file_bytes:
            raise ToolFailedError("FILE_TOO_LARGE", f"the file would pass {self._sandbox.max_file_bytes} bytes")
        return after

    def _undo(self, path: str, effect: _Effect) -> str:
        with self._journal.exclusive():
            begun = self._journal.read(effect.key)
            if begun is not None:
                with self._sandbox.parent(begun.path, writes=True) as (folder, name):
                    if not self._is_to_be_done(folder, name, effect):
                        return _undone(begun)
                    self._forget(folder, effect)
            return self._restore(path, effect)

    def _take_back(self, written_key: str, effect: _Effect) -> tuple[JournalNote, bool]:
        """Restore what the write of a key replaced, and forget that change: no later undo means it any more.

        Return what was done, and whether the file has the earlier content: it is read before any other write may begin.
        What is taken back is kept as a version of its own, of no conversation: it comes back by the name of the file.
        """
        effect = replace(effect, thread_id="")
        with self._journal.exclusive():
            done, there = self._journal.read(effect.key), True
            if done is None or not self._is_over(done, effect):
                done = self._put_back(written_key, effect)
                with self._sandbox.parent(done.path) as (folder, name):
                    there = sha256(self._sandbox.read_bytes(folder, name)) == done.after
            effect.versions.drop(written_key)
            return done, there

    def _is_over(self, note: JournalNote, effect: _Effect) -> bool:
        """Return True if the part of an undo that is noted has happened; forget an attempt that has not."""
        with self._sandbox.parent(note.path, writes=True) as (folder, name):
            if self._is_to_be_done(folder, name, effect):
                self._forget(folder, effect)
                return False
        return True

    def _put_back(self, written_key: str, effect: _Effect) -> JournalNote:
        change = next((one for one in effect.versions.changes() if one.effect_key == written_key), None)
        if change is None:
            noted = self._journal.read(written_key)
            if noted is None or noted.before != noted.after:
                raise ToolFailedError("UNDO_GONE", "no earlier version is kept any more")
            with self._sandbox.parent(noted.path) as (folder, name):
                if sha256(self._sandbox.read_bytes(folder, name)) != noted.after:
                    raise _changed_since()
            return noted  # it wrote what was there already
        with self._sandbox.parent(change.path, writes=True) as (folder, name):
            current = self._sandbox.read_bytes(folder, name)
            if sha256(current) != change.after:
                raise _changed_since()
            restored = effect.versions.content(change.before) if change.before else None
            if change.before and restored is None:
                raise ToolFailedError("UNDO_LOST", "the earlier version cannot be read")
            return self._change(folder, name, change.path, current, restored, effect)

    def _restore(self, path: str, effect: _Effect) -> str:
        """Undo the newest completed change: of path if it is given, otherwise of the requesting conversation.

        Without a path, a person means what they just saw done, and not a concurrent change by another conversation.
        """
        if path:
            split_path(path)  # report a path outside the sandbox as such, and not as one without a change
        for change in reversed(effect.versions.changes()):
            if in_nfc(change.path) != in_nfc(path) if path else change.thread_id != effect.thread_id:
                continue
            with self._sandbox.parent(change.path, writes=True) as (folder, name):
                current = self._sandbox.read_bytes(folder, name)
                if not self._happened(folder, name, change, current):
                    continue
                if sha256(current) != change.after:
                    raise _changed_since()
                restored = effect.versions.content(change.before) if change.before else None
                if change.before and restored is None:
                    break
                return _undone(self._change(folder, name, change.path, current, restored, effect))
        raise ToolFailedError("NOTHING_TO_UNDO", "no earlier version is kept")

    def _happened(self, folder: int, name: str, change: FileChange, current: bytes | None) -> bool:
        """Return False for a change whose process died or failed between storing the version and replacing the file.

        The note of a deleted thread is gone; the file's content then decides.
        """
        if self._journal.read(change.effect_key) is None:
            return sha256(current) != change.before
        return self._judge(folder, name, change.effect_key) != "not_done"

    def _is_to_be_done(self, folder: int, name: str, effect: _Effect) -> bool:
        """Return True if an effect has not happened yet.

        Raises:
            EffectUnknownError: The outcome of an earlier attempt can no longer be determined.
        """
        effect.commit.may_have_come = self._journal.read(effect.key) is not None
        judged = self._judge(folder, name, effect.key)
        if judged == "unknown":
            raise EffectUnknownError("the file changed after an unfinished write")
        effect.commit.may_have_come = judged == "done"
        return judged == "not_done"

    def _change(  # noqa: PLR0917 - the file by folder, name and path; what it held and shall hold
        self, folder: int, name: str, path: str, before: bytes | None, after: bytes | None, effect: _Effect
    ) -> JournalNote:
        """Replace a file's content, or remove the file if after is None; keep the previous content."""
        draft = _draft_name(effect.key)
        note = JournalNote(path, sha256(before), sha256(after), done=False)
        self._forget(folder, effect)
        try:
            if after is not None:
                _store_draft(folder, draft, after)
            self._journal.write(effect.key, note)
            reach("agent.write_file.noted")
            if note.before != note.after:
                size, now_us = len(before or b""), time.time_ns() // 1_000
                change = FileChange(effect.key, path, note.before, size, note.after, effect.thread_id, now_us)
                _keep(effect, change, before)
        except OSError as error:
            self._forget(folder, effect)
            if effect.must_keep:
                raise ToolFailedError("UNDO_NOT_KEPT", "what the write would replace cannot be kept") from error
            raise
        reach("agent.write_file.kept")
        source, target = (name, draft) if after is None else (draft, name)
        try:
            with effect.commit.moment():
                # Who writes past this agent holds no lock: look once more at what is about to be replaced.
                if sha256(self._sandbox.read_bytes(folder, name)) != note.before:
                    raise _changed_since()
                os.replace(source, target, src_dir_fd=folder, dst_dir_fd=folder)
        except ToolFailedError:
            self._forget(folder, effect)
            raise
        reach("agent.write_file.renamed")
        return self._finish(folder, effect.key, note)

    def _finish(self, folder: int, effect_key: str, note: JournalNote) -> JournalNote:
        """Durably note that an effect is done, and delete what a removal left behind.

        If only this note cannot be written, the effect is still durable, and the earlier note still allows recovery to
        determine the outcome.
        """
        os.fsync(folder)
        done = replace(note, done=True)
        try:
            self._journal.write(effect_key, done)
        except JournalUnavailableError as error:
            _log.error("a file was changed and cannot be noted as done", why=_name_of(error))
            return done
        if not note.after:
            with suppress(FileNotFoundError):
                os.unlink(_draft_name(effect_key), dir_fd=folder)
        return done

    def _forget(self, folder: int, effect: _Effect) -> None:
        """Revert an attempt that did not happen: remove its note before its draft, so that no note lacks its draft."""
        effect.versions.drop(effect.key)
        self._journal.remove(effect.key)
        with suppress(FileNotFoundError):
            os.unlink(_draft_name(effect.key), dir_fd=folder)

    def _judge_alone(self, path: str, effect_key: str) -> WriteState:
        try:
            with self._journal.exclusive(), self._sandbox.parent(path) as (folder, name):
                return self._judge(folder, name, effect_key)
        except ToolFailedError:
            return "unknown"

    def _judge(self, folder: int, name: str, effect_key: str) -> WriteState:
        """Return what became of an effect; one that happened without being noted as done is noted now."""
        note = self._journal.read(effect_key)
        if note is None:
            return "not_done"
        if note.done:
            return "done"
        if is_there(folder, _draft_name(effect_key)) is bool(note.after):
            return "not_done"
        if note.after and sha256(self._sandbox.read_bytes(folder, name)) != note.after:
            return "unknown"
        self._finish(folder, effect_key, note)
        return "done"


def _changed_since() -> ToolFailedError:
    return ToolFailedError("CHANGED_SINCE", "the file has been changed since")


def _attempted(work: Callable[[_Effect], T], effect: _Effect) -> T:
    """Do the work. An error before the commit point is a failure without effect; any other error propagates."""
    try:
        return work(effect)
    except OSError as error:
        if effect.commit.may_have_come:
            raise
        if effect.must_keep and not effect.versions.is_usable():
            raise ToolFailedError("UNDO_NOT_KEPT", "what the write would replace cannot be kept") from error
        why = _name_of(error)
        if isinstance(error, JournalUnavailableError):
            _log.error("no file is changed: the effect journal in AGENT_DATA_DIR cannot be used", why=why)
            raise ToolFailedError("NOT_NOTED", f"the effect journal cannot be used ({why})") from error
        _log.error("a file cannot be changed", why=why)
        raise ToolFailedError("IO_ERROR", f"the system says {why}") from error


def _keep(effect: _Effect, change: FileChange, before: bytes | None) -> None:
    """Store what a change replaces; where it must be kept, read it back. Raise OSError."""
    effect.versions.keep(change, before)
    if effect.must_keep and not effect.versions.holds(change):
        raise OSError(errno.EIO, "the earlier version is not there")


def _name_of(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, "EIO")


def file_info(sandbox: Sandbox, path: str) -> str:
    """Return file_info's answer for a path. Raise ToolFailedError as Sandbox.stat_file does."""
    found = sandbox.stat_file(path)
    told = (
        {"size": None, "modified": None} if found is None else {"size": found.st_size, "modified": modified_at(found)}
    )
    return json.dumps({"path": path, "exists": found is not None, **told}, ensure_ascii=False)


def _with_line(before: bytes, content: bytes) -> bytes:
    """Return a file's bytes with the content appended as whole lines."""
    if not content:
        return before
    begin = b"" if not before or before.endswith(b"\n") else b"\n"
    end = b"" if content.endswith(b"\n") else b"\n"
    return before + begin + content + end


def _undone(note: JournalNote) -> str:
    """Return undo_write's answer."""
    return json.dumps({"path": note.path, "removed": not note.after}, ensure_ascii=False)


def _draft_name(effect_key: str) -> str:
    return f"{RESERVED_PREFIX}{EffectJournal.name_of(effect_key)}"


def _store_draft(folder: int, draft: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.fsync(folder)
