"""Executions whose outcome RiskGate does not know yet, so that one that died is reported as in doubt.

Each proxy process has a file of its own, locked while it lives: "+" and an execution before it is redeemed, "-" after
its outcome was reported. A file without a living process tells what that process left behind. A process that is killed
loses nothing of it; after a power failure RiskGate's own record of the redemption without an outcome remains.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from phylactery_client import PhylacteryError, RiskGateClient
from phylactery_client.results import Evaluation, Redemption
from phylactery_client.riskgate import ToolCall

from phylactery_mcp_proxy.state.folder import StateError, StateFolder

_PREFIX: Final = "running-"
_MAX_BYTES: Final = 1024 * 1024
_ATTEMPTS: Final = 20
_NO_ANSWER: Final = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL", "UNKNOWN", "DATA_LOSS"})
"""Codes after which nobody knows whether RiskGate has recorded what it was told."""


class Journal:
    """The open executions of this process, by execution id, each with its subject."""

    def __init__(self, folder: StateFolder) -> None:
        """Create and lock this process's file. Raise StateError."""
        self._folder = folder
        self._path, self._file = self._created()
        self._open: dict[str, str] = {}

    def begin(self, execution_id: str, subject: str) -> bool:
        """Write down an execution before it is redeemed; return False if it is open already. Raise StateError."""
        if execution_id in self._open:
            return False
        self._write("+", execution_id, subject)
        self._open[execution_id] = subject
        return True

    def end(self, execution_id: str) -> None:
        """Write down that its outcome is known to RiskGate, or that it was never permitted. Raise StateError."""
        if self._open.pop(execution_id, None) is None:
            return
        self._write("-", execution_id, "")
        if not self._open and os.fstat(self._file).st_size > _MAX_BYTES:
            os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Remove the file if nothing is open; otherwise the next proxy reports what is."""
        if not self._open:
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def left_behind(self) -> Iterator[tuple[Path, dict[str, str]]]:
        """Yield the files of processes that have died, with what was open; each is locked meanwhile."""
        for path in sorted(self._folder.path.glob(f"{_PREFIX}*")):
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path, _open_in(path.read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue  # its process lives
            finally:
                os.close(descriptor)

    def _created(self) -> tuple[Path, int]:
        """Return a new file and its locked descriptor."""
        for _ in range(_ATTEMPTS):
            path = self._folder.file(f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}")
            try:
                file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
                fcntl.flock(file, fcntl.LOCK_EX)
                if os.fstat(file).st_nlink:
                    return path, file
                os.close(file)  # until it was locked, another proxy took it for that of a dead process
            except OSError as error:
                raise StateError(f"{path}: cannot be written ({error.strerror})") from None
        raise StateError(f"{self._folder.path}: other proxies remove every file in it")

    def _write(self, sign: str, execution_id: str, subject: str) -> None:
        line = json.dumps([sign, execution_id, subject]) + "\n"
        try:
            os.write(self._file, line.encode())
        except OSError as error:
            raise StateError(f"{self._path}: cannot be written ({error.strerror})") from None


class ReportingClient(RiskGateClient):
    """RiskGate's client, which keeps in the journal what may be redeemed and has no reported outcome yet."""

    journal: Journal | None = None
    subject = ""
    """Whom it acts for, empty for its own identity."""

    def acting_for(self, subject: str, tenant: str = "") -> Self:
        """Return a client that acts for another subject; see RiskGateClient."""
        other = super().acting_for(subject, tenant)
        other.subject = subject
        return other

    async def evaluate(self, call: ToolCall, *, execution_id: str = "", **given: Any) -> Evaluation:
        """Return the decision about a call; see RiskGateClient. It may redeem the call for the execution."""
        with self._opened(execution_id) as begun:
            decided = await super().evaluate(call, execution_id=execution_id, **given)
        if begun and decided.redemption is None:
            self._settled(execution_id)
        return decided

    async def redeem(self, permit: str, call: ToolCall, *, execution_id: str, **given: Any) -> Redemption:
        """Redeem a permit; see RiskGateClient."""
        with self._opened(execution_id) as begun:
            redeemed = await super().redeem(permit, call, execution_id=execution_id, **given)
        if begun and redeemed.repeated_redeem:  # whoever redeemed it before reports it
            self._settled(execution_id)
        return redeemed

    @contextmanager
    def _opened(self, execution_id: str) -> Iterator[bool]:
        """Open an execution if it is not, and yield whether this did; if RiskGate gives no answer, it stays open."""
        begun = bool(execution_id) and self.journal is not None and self.journal.begin(execution_id, self.subject)
        try:
            yield begun
        except PhylacteryError as error:
            if begun and error.code.name not in _NO_ANSWER:
                self._settled(execution_id)
            raise

    async def report_outcome(self, execution_id: str, **given: Any) -> int:
        """Report an outcome; see RiskGateClient."""
        index = await super().report_outcome(execution_id, **given)
        self._settled(execution_id)
        return index

    def _settled(self, execution_id: str) -> None:
        if self.journal is not None:
            self.journal.end(execution_id)


async def report_left_behind(journal: Journal, gate: RiskGateClient) -> int:
    """Report what dead processes left open as in doubt, and return how many there were. Raise PhylacteryError.

    RiskGate refuses what was reported before, or never redeemed: both are settled.
    """
    reported = 0
    for path, left in journal.left_behind():
        for execution_id, subject in left.items():
            client = gate.acting_for(subject) if subject else gate
            try:
                await client.report_outcome(execution_id, outcome="IN_DOUBT", error_code="PROCESS_DIED")
                reported += 1
            except PhylacteryError as error:
                if error.code.name in _NO_ANSWER or error.code.name == "UNAUTHENTICATED":
                    raise
        path.unlink(missing_ok=True)
    return reported


def _open_in(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        try:
            sign, execution_id, subject = json.loads(line)
        except ValueError:
            continue  # the last line, cut by the death
        if sign == "+":
            found[str(execution_id)] = str(subject)
        else:
            found.pop(str(execution_id), None)
    return found
