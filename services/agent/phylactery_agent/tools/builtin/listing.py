"""The folder tools list_dir and search_files: list the sandbox and search text in it, shared folders included.

Every folder is opened relative to its parent, without following links, as in sandbox.py. Names that RiskGate's policies
protect by path (hidden names, key material) are neither listed nor searched: a search over a folder must not reveal
what reading the file would not.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, cast

import re2
from phylactery_chassis.util.file_names import folded, is_hidden, is_key_material

from phylactery_agent.tools.builtin.sandbox import Sandbox, in_nfc, modified_at
from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.named_folders import SHARED
from phylactery_agent.tools.specs import ListDirArguments, SearchFilesArguments

MAX_ENTRIES: Final = 1_000
"""Maximum number of entries in one answer."""
MAX_SCANNED: Final = 100_000
"""Maximum number of names examined in one folder; any further ones are ignored."""
MAX_FILES: Final = 5_000
"""Maximum number of files examined in one search."""
MAX_SEARCHED_BYTES: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 32
MAX_SEARCH_SECONDS: Final = 8.0
"""Below the contract's timeout, so that a stopped search can return its partial result and say so."""
MAX_LINE_CHARS: Final = 300


class _Expression(Protocol):
    def search(self, text: str) -> object | None: ...


@dataclass
class _Search:
    """One search in progress."""

    expression: _Expression
    limit: int
    stopped: threading.Event
    until: float
    matches: list[dict[str, Any]] = field(default_factory=list)
    searched: int = 0
    skipped: int = 0
    bytes_read: int = 0
    complete: bool = True

    @property
    def over(self) -> bool:
        """Return True if a limit is reached, which makes the answer incomplete."""
        reached = (
            self.stopped.is_set()
            or self.searched + self.skipped >= MAX_FILES
            or self.bytes_read >= MAX_SEARCHED_BYTES
            or time.monotonic() >= self.until
        )
        if reached or not self.complete:
            self.complete = False
            return True
        return False

    def answer(self) -> str:
        """Return the tool's JSON."""
        return json.dumps(
            {
                "matches": self.matches,
                "searched": self.searched,
                "skipped": self.skipped,
                "complete": self.complete,
            },
            ensure_ascii=False,
        )


class FolderTools:
    """The folder tools over one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def list_dir(self, invocation: Invocation) -> str:
        """Return a folder's entries by name: kind, size in bytes, time of the last change.

        Raises:
            ToolFailedError: NOT_FOUND, NOT_A_FOLDER, or a code of Sandbox.
        """
        args = arguments_of(invocation, ListDirArguments)
        return await asyncio.to_thread(self._list, args.path)

    async def search_files(self, invocation: Invocation) -> str:
        """Return the matching lines below a folder, in path order.

        Raises:
            ToolFailedError: PATTERN_INVALID, NOT_FOUND, NOT_A_FOLDER, or a code of Sandbox.
        """
        args = arguments_of(invocation, SearchFilesArguments)
        search = _Search(
            expression=_compiled(args), limit=args.limit, stopped=threading.Event(), until=_now() + MAX_SEARCH_SECONDS
        )
        try:
            return await asyncio.to_thread(self._search, args.path, search)
        except asyncio.CancelledError:
            search.stopped.set()  # the thread cannot be stopped, but its walk can
            raise

    def _list(self, path: str) -> str:
        mounted, complete = self._sandbox.mounted_in(path), True
        entries = [{"name": name, "kind": "folder"} for name in mounted]
        if not _only_mounts(path, mounted):
            with self._sandbox.folder(path) as folder:
                names, complete = _names(folder, MAX_ENTRIES)
                own = (_entry(folder, name) for name in names if name not in mounted)
                entries = [*(entry for entry in own if entry is not None), *entries]
        return json.dumps({"entries": entries, "complete": complete}, ensure_ascii=False)

    def _search(self, path: str, search: _Search) -> str:
        mounted, top = self._sandbox.mounted_in(path), "" if path == "." else path.removesuffix("/")
        if not _only_mounts(path, mounted):
            with self._sandbox.folder(path) as folder:
                self._walk(folder, top, 0, search, besides=mounted)
        if mounted:
            for name in self._sandbox.mounted_in(SHARED):
                with suppress(ToolFailedError), self._sandbox.folder(f"{SHARED}/{name}") as folder:
                    self._walk(folder, f"{SHARED}/{name}", 1, search)
        return search.answer()

    def _walk(self, folder: int, path: str, depth: int, search: _Search, besides: Sequence[str] = ()) -> None:
        names, complete = _names(folder, MAX_SCANNED)
        search.complete = search.complete and complete
        for name in names:
            if search.over:
                return
            if name in besides:
                continue
            below = f"{path}/{in_nfc(name)}" if path else in_nfc(name)
            kind = _kind(folder, name)
            if kind == "file":
                self._look_into(folder, name, below, search)
            elif kind == "folder" and depth < MAX_DEPTH:
                with suppress(ToolFailedError), self._sandbox.inner(folder, name) as inner:
                    self._walk(inner, below, depth + 1, search)
            elif kind == "folder":
                search.complete = False

    def _look_into(self, folder: int, name: str, path: str, search: _Search) -> None:
        """Add a file's matching lines; a file that is not text, too large or unreadable is counted as skipped."""
        try:
            data = self._sandbox.read_bytes(folder, name)
            path.encode()
            text = "" if data is None else data.decode()
        except (ToolFailedError, UnicodeError):
            search.skipped += 1
            return
        if data is None or "\x00" in text:
            search.skipped += 1
            return
        search.searched += 1
        search.bytes_read += len(data)
        for number, line in enumerate(text.split("\n"), 1):
            if search.expression.search(line) is None:
                continue
            if len(search.matches) >= search.limit:
                search.complete = False
                return
            shown = line.rstrip("\r")
            cut = shown if len(shown) <= MAX_LINE_CHARS else shown[:MAX_LINE_CHARS] + "…"
            search.matches.append({"path": path, "line": number, "text": cut})


def _only_mounts(path: str, mounted: Sequence[str]) -> bool:
    """Return True for the folder that holds nothing but shared folders: no folder of the person's is behind it."""
    return bool(mounted) and path.removesuffix("/") == SHARED


def _now() -> float:
    return time.monotonic()


def _compiled(args: SearchFilesArguments) -> _Expression:
    engine = cast("Any", re2)
    options = engine.Options()
    options.literal, options.case_sensitive, options.log_errors = args.literal, not args.ignore_case, False
    try:
        return cast("_Expression", engine.compile(args.pattern, options=options))
    except engine.error as error:
        raise ToolFailedError("PATTERN_INVALID", "the pattern is not RE2; ask for it literally") from error


def _protected(name: str) -> bool:
    """Return True if policies never allow a file of this name to be read, by RiskGate's view of path segments.

    RiskGate treats a backslash as a separator, so a name that contains one counts as several segments.
    """
    return any(is_hidden(part) or is_key_material(part) for part in folded(name).replace("\\", "/").split("/"))


def _names(folder: int, limit: int) -> tuple[list[str], bool]:
    """Return the visible names in order, and whether the list is complete."""
    scanned = 0

    def seen() -> Iterator[str]:
        nonlocal scanned
        with os.scandir(folder) as found:
            for entry in islice(found, MAX_SCANNED + 1):
                scanned += 1
                if not _protected(entry.name):
                    yield entry.name

    names = heapq.nsmallest(limit + 1, seen())
    return names[:limit], len(names) <= limit and scanned <= MAX_SCANNED


def _stat(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return None  # removed meanwhile


def _kind(folder: int, name: str) -> str:
    found = _stat(folder, name)
    if found is None:
        return "gone"
    if stat.S_ISDIR(found.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(found.st_mode) else "other"


def _entry(folder: int, name: str) -> dict[str, Any] | None:
    found = _stat(folder, name)
    if found is None:
        return None
    entry: dict[str, Any] = {"name": in_nfc(name).encode("utf-8", "surrogateescape").decode("utf-8", "replace")}
    entry["kind"] = _kind(folder, name)
    if entry["kind"] == "file":
        entry["size"] = found.st_size
    entry["modified"] = modified_at(found)
    return entry
