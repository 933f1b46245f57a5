"""read_file and write_file. A write counts once wherever the process is killed.

Order of a write: temporary file durable → note durable → rename (the effect) → folder durable → note says done.
The temporary file carries the effect's key in its name, so after a crash its presence says the rename did not happen.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal

from phylactery_chassis.crashpoints import reach

from phylactery_agent.tools.builtin.journal import EffectJournal, JournalNote
from phylactery_agent.tools.builtin.sandbox import RESERVED_PREFIX, Sandbox
from phylactery_agent.tools.contract import EffectUnknownError, Invocation, Reconciled, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import ReadFileArguments, WriteFileArguments

WriteState = Literal["done", "not_done", "unknown"]


class _Commit:
    """The moment of the effect: after close() it cannot come any more, so a time-out leaves no late write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def moment(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise ToolFailedError("TIMEOUT", "the write was stopped before it happened")
            yield

    def close(self) -> None:
        with self._lock:
            self._closed = True


def _sha(data: bytes | None) -> str:
    return "" if data is None else hashlib.sha256(data).hexdigest()


class FileTools:
    """The two file tools over one sandbox and one journal."""

    def __init__(self, sandbox: Sandbox, journal: EffectJournal) -> None:
        self._sandbox = sandbox
        self._journal = journal

    async def read_file(self, invocation: Invocation) -> str:
        """Answers a file's text.

        Raises:
            ToolFailedError: NOT_FOUND, NOT_UTF8, or as Sandbox says.
        """
        args = arguments_of(invocation, ReadFileArguments)
        return await asyncio.to_thread(self._read, args.path)

    async def write_file(self, invocation: Invocation) -> str:
        """Writes or appends, once per effect key; answers the path.

        Raises:
            ToolFailedError: FILE_TOO_LARGE, NOT_FOUND for a missing folder, TIMEOUT, or as Sandbox says.
            EffectUnknownError: an earlier attempt cannot be judged any more.
        """
        args = arguments_of(invocation, WriteFileArguments)
        commit = _Commit()
        try:
            return await asyncio.to_thread(self._write, args, invocation.effect_key, commit)
        except asyncio.CancelledError:
            commit.close()  # the thread cannot be stopped, but its rename can
            raise

    async def reconcile_write(self, invocation: Invocation) -> Reconciled:
        """Answers whether the write under this key happened."""
        args = arguments_of(invocation, WriteFileArguments)
        state = await asyncio.to_thread(self._judge_alone, args.path, invocation.effect_key)
        return Reconciled(state, args.path if state == "done" else "")

    def _read(self, path: str) -> str:
        with self._sandbox.parent(path) as (folder, name):
            data = self._sandbox.read_bytes(folder, name)
        if data is None:
            raise ToolFailedError("NOT_FOUND", "there is no such file or folder")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolFailedError("NOT_UTF8", "the file is not UTF-8 text") from error

    def _write(self, args: WriteFileArguments, effect_key: str, commit: _Commit) -> str:
        with self._journal.exclusive(), self._sandbox.parent(args.path) as (folder, name):
            judged = self._judge(folder, name, effect_key)
            if judged == "unknown":
                raise EffectUnknownError("the file changed after an unfinished write")
            if judged == "not_done":
                self._replace(folder, name, args, effect_key, commit)
        return args.path

    def _replace(self, folder: int, name: str, args: WriteFileArguments, effect_key: str, commit: _Commit) -> None:
        before = self._sandbox.read_bytes(folder, name)
        try:
            content = args.content.encode()
        except UnicodeEncodeError as error:
            raise ToolFailedError("NOT_UTF8", "the content is not valid Unicode") from error
        after = (before or b"") + content if args.append else content
        if len(after) > self._sandbox.max_file_bytes:
            raise ToolFailedError("FILE_TOO_LARGE", f"the file would pass {self._sandbox.max_file_bytes} bytes")
        draft = _draft_name(effect_key)
        self._forget(folder, draft, effect_key)
        _store_draft(folder, draft, after)
        note = JournalNote(args.path, _sha(before), _sha(after), done=False)
        self._journal.write(effect_key, note)
        reach("agent.write_file.noted")
        try:
            with commit.moment():
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except ToolFailedError:
            self._forget(folder, draft, effect_key)
            raise
        reach("agent.write_file.renamed")
        os.fsync(folder)
        self._journal.write(effect_key, replace(note, done=True))

    def _forget(self, folder: int, draft: str, effect_key: str) -> None:
        """Takes back an attempt that did not happen: the note first, so that no note is ever without its draft."""
        self._journal.remove(effect_key)
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)

    def _judge_alone(self, path: str, effect_key: str) -> WriteState:
        try:
            with self._journal.exclusive(), self._sandbox.parent(path) as (folder, name):
                return self._judge(folder, name, effect_key)
        except ToolFailedError:
            return "unknown"

    def _judge(self, folder: int, name: str, effect_key: str) -> WriteState:
        note = self._journal.read(effect_key)
        if note is None:
            return "not_done"
        if note.done:
            return "done"
        if _exists(folder, _draft_name(effect_key)):
            return "not_done"
        return "done" if _sha(self._sandbox.read_bytes(folder, name)) == note.after else "unknown"


def _draft_name(effect_key: str) -> str:
    return f"{RESERVED_PREFIX}{EffectJournal.name_of(effect_key)}"


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _store_draft(folder: int, draft: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    os.fsync(folder)
