"""A coding agent as the hooks see it: it runs the hook process for every event and obeys the answer."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phylactery_hooks.settings import HelperSettings, save

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 200.0
PATIENCE_SECONDS = 120.0
"""How long a hook process waits in tests: a busy machine starts a helper slowly."""


@dataclass(frozen=True)
class Answered:
    """What a hook process answered."""

    code: int
    out: str
    told: str

    @property
    def decision(self) -> str:
        """Return allow or deny, "refused" for exit code 2, or "" for no decision."""
        if self.code:
            return "refused" if self.code == 2 else f"exit {self.code}"
        found = json.loads(self.out)
        return found.get("decision") or found.get("hookSpecificOutput", {}).get("permissionDecision", "")

    @property
    def reason(self) -> str:
        """Return why, wherever it stands."""
        found = json.loads(self.out) if self.out else {}
        return (
            found.get("reason") or found.get("hookSpecificOutput", {}).get("permissionDecisionReason", "") or self.told
        )

    @property
    def bound(self) -> dict[str, Any]:
        """Return the input that the host has to run."""
        inner = json.loads(self.out)["hookSpecificOutput"]
        return inner.get("updatedInput") or inner["tool_input"]


def prepared(folder: Path, target: str, **settings: Any) -> Path:
    """Make the folder of a helper."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    save(folder, HelperSettings(target=target, **{"answer_seconds": 100.0, **settings}))
    return folder


class Coder:
    """A session of a host in a workspace."""

    def __init__(self, workspace: Path, folder: Path, *, host: str = "claude-code", session_id: str = "s-1") -> None:
        self.workspace, self.folder, self.host, self.session_id = workspace, folder, host, session_id
        self._numbers = itertools.count(1)

    def process(self, event: str = "", *, host: str = "") -> subprocess.Popen[bytes]:
        """Start a hook process."""
        start = f"import phylactery_hooks.hook as hook; hook.SECONDS = {PATIENCE_SECONDS}; hook.main()"
        words = [sys.executable, "-P", "-c", start, host or self.host, *([event] if event else [])]
        env = os.environ | {"CLAUDE_PROJECT_DIR": str(self.workspace)}
        return subprocess.Popen(
            [*words, "--dir", str(self.folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=self.workspace,
        )  # fmt: skip

    def raw(self, payload: bytes, event: str = "", *, host: str = "") -> Answered:
        """Give a hook process these bytes."""
        process = self.process(event, host=host)
        try:
            out, told = process.communicate(payload, timeout=LIMIT_SECONDS)
        finally:
            process.kill()
        return Answered(process.returncode, out.decode(), told.decode())

    def event(self, name: str, **fields: Any) -> Answered:
        """Report an event."""
        return self.raw(json.dumps(self.payload(name, **fields)).encode(), name)

    def payload(self, name: str, **fields: Any) -> dict[str, Any]:
        """Return an event as the host writes it."""
        common = {"session_id": self.session_id, "cwd": str(self.workspace), "transcript_path": "/dev/null"}
        return common | {"hook_event_name": name} | fields

    def says(self, words: str) -> Answered:
        """The user writes something."""
        return self.event("BeforeAgent" if self.host == "gemini" else "UserPromptSubmit", prompt=words)

    def proposes(self, tool: str, given: Mapping[str, Any], call: str = "") -> tuple[Answered, str]:
        """The model proposes a call; return the answer and the call's id."""
        call = call or f"toolu_{self.session_id}_{next(self._numbers)}"
        named = {} if self.host == "gemini" else {"tool_use_id": call}
        name = "BeforeTool" if self.host == "gemini" else "PreToolUse"
        return self.event(name, tool_name=tool, tool_input=dict(given), **named), call

    def shell(self, command: str) -> Answered:
        """The model proposes a command."""
        return self.proposes("run_shell_command" if self.host == "gemini" else "Bash", {"command": command})[0]

    def ran(self, tool: str, given: Mapping[str, Any], call: str, result: Any) -> Answered:
        """The host ran a call."""
        named = {} if self.host == "gemini" else {"tool_use_id": call}
        name = "AfterTool" if self.host == "gemini" else "PostToolUse"
        return self.event(name, tool_name=tool, tool_input=dict(given), tool_response=result, **named)

    def stops(self) -> Answered:
        """The turn ends."""
        return self.event("AfterAgent" if self.host == "gemini" else "Stop")

    def state(self) -> dict[str, Any]:
        """Return what the helper keeps of this session."""
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())["sessions"]
        return found[f"{self.host}.{self.session_id}"]

    def helper(self) -> int:
        """Return the process id of the helper, 0 if none runs."""
        try:
            return int((self.folder / "helper.lock").read_text() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def end_helper(self) -> None:
        """End the helper and wait until it is gone."""
        number = self.helper()
        if not number or not alive(number):
            return
        os.kill(number, signal.SIGTERM)
        limit = time.monotonic() + LIMIT_SECONDS
        while alive(number):
            assert time.monotonic() < limit, "the helper does not end"
            time.sleep(0.02)


def alive(number: int) -> bool:
    """Return True if a process runs; one that ended and was not waited for does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
