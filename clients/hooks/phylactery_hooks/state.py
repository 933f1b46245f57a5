"""State between hook processes: which task a session is at, and which calls run or wait.

It holds ids and keyed hashes, never words, arguments or results, and outlives the helper in a file of its own.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from phylactery_hooks.settings import write_private

FILE: Final = "state.json"
MAX_SESSIONS: Final = 200
_FORGET_AFTER: Final = 7 * 86_400.0


@dataclass(slots=True)
class TaskState:
    """A task of RiskGate that a session began."""

    task_id: str
    run_id: str


@dataclass(slots=True)
class CallState:
    """A permitted call that the host runs now."""

    tool: str
    call_id: str
    task_id: str
    run_id: str
    execution_id: str
    directory: str
    digest: str


@dataclass(slots=True)
class WaitingState:
    """A call that waits for a person, found again by its digest when the model makes it once more."""

    call_id: str
    task_id: str
    run_id: str
    approval_id: str
    approval_class: str


@dataclass(slots=True)
class SessionState:
    """A session of a host: its workspace, its tasks that are open, and its calls."""

    workspace: str
    current: TaskState | None = None
    last_task: str = ""
    """The task that the next request continues."""
    paused: list[TaskState] = field(default_factory=list)
    """Earlier tasks, kept open for calls that wait."""
    running: dict[str, CallState] = field(default_factory=dict)
    waiting: dict[str, WaitingState] = field(default_factory=dict)
    used: float = 0.0

    def tasks(self) -> list[TaskState]:
        """Return the open tasks."""
        return [*self.paused, *([self.current] if self.current else [])]

    def needed(self) -> set[str]:
        """Return the tasks of calls that run or wait."""
        return {one.task_id for one in self.running.values()} | {one.task_id for one in self.waiting.values()}


def client_folder(folder: Path, tenant: str, subject: str) -> Path:
    """Return the folder below a helper's where the state of one client's sessions is kept; make it if need be."""
    named = hashlib.blake2b(json.dumps([tenant, subject]).encode(), digest_size=16).hexdigest()
    found = folder / "clients" / named
    found.mkdir(mode=0o700, parents=True, exist_ok=True)
    return found


class State:
    """The sessions of one folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._key = secrets.token_hex(32)
        self.sessions: dict[str, SessionState] = {}
        self._load()

    def session(self, session_id: str, workspace: str) -> SessionState:
        """Return a session; its workspace is where its first event came from."""
        found = self.sessions.setdefault(session_id, SessionState(workspace))
        found.used = time.time()
        return found

    def digest(self, tool: str, arguments: Any) -> str:
        """Return a keyed hash of a call, by which it is known again."""
        text = json.dumps([tool, arguments], sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), key=bytes.fromhex(self._key), digest_size=32).hexdigest()

    def save(self) -> None:
        """Write the state; sessions nobody used for a week are dropped."""
        alive = {name: one for name, one in self.sessions.items() if one.used > time.time() - _FORGET_AFTER}
        self.sessions = dict(sorted(alive.items(), key=lambda pair: pair[1].used)[-MAX_SESSIONS:])
        written = {"key": self._key, "sessions": {name: asdict(one) for name, one in self.sessions.items()}}
        write_private(self._path, json.dumps(written))

    def _load(self) -> None:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            sessions = {name: _session(one) for name, one in found["sessions"].items()}
            bytes.fromhex(found["key"])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return  # without it calls are asked about again, and those that ran stay without an outcome
        self._key, self.sessions = found["key"], sessions


def _session(found: dict[str, Any]) -> SessionState:
    session = SessionState(**found)
    session.current = TaskState(**found["current"]) if found["current"] else None
    session.paused = [TaskState(**one) for one in found["paused"]]
    session.running = {name: CallState(**one) for name, one in found["running"].items()}
    session.waiting = {name: WaitingState(**one) for name, one in found["waiting"].items()}
    return session
