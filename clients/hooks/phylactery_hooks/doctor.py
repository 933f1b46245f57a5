"""Doctor: proves with canaries that a host's hooks are in place, deny, and hold when RiskGate is away.

The canaries run the very command lines in the host's settings, the way the host runs them, or post to the addresses in
them. What is proposed in them is never run.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from phylactery_hooks.hook import PASSIVE, SECONDS, check_folder
from phylactery_hooks.hosts import EVENTS, Kind
from phylactery_hooks.install import InstallError, hooks_in, is_trusted
from phylactery_hooks.settings import TOKEN_FILE, TOKEN_VARIABLE, HelperSettings, SettingsError, load, save

_SHELL: Final = {"claude-code": "Bash", "codex": "Bash", "gemini": "run_shell_command"}
_LIMIT_SECONDS: Final = SECONDS + 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    passed: bool
    told: str


def examine(host: str, path: Path, folder: Path) -> Iterator[Check]:
    """Yield the checks of a host whose settings are at path and whose helper serves folder."""
    try:
        hooks = hooks_in(host, path)
    except InstallError as error:
        yield Check("settings", passed=False, told=str(error))
        return
    yield from _settings(host, path, hooks)
    try:
        check_folder(str(folder))
        load(folder).token()
        yield Check("folder", passed=True, told=f"{folder} belongs to you alone")
    except (OSError, SettingsError) as error:
        yield Check("folder", passed=False, told=str(error))
        return
    before = next(event for event, kind in EVENTS[host].items() if kind is Kind.BEFORE)
    found = hooks.get(before, [])
    if found and found[0].get("type") == "http":
        yield from _posted_canaries(host, before, str(found[0].get("url", "")), folder)
    elif found:
        yield from _canaries(host, before, str(found[0].get("command", "")), folder)


def _settings(host: str, path: Path, hooks: dict[str, list[dict[str, Any]]]) -> Iterator[Check]:
    for event in EVENTS[host]:
        found = hooks.get(event, [])
        told = f"{event} in {path}"
        if len(found) != 1:
            yield Check("settings", passed=False, told=f"{told}: {'not there' if not found else 'there twice'}")
            continue
        (hook,) = found
        limit = float(hook.get("timeout", 0)) / (1000 if host == "gemini" else 1)
        if limit <= SECONDS:
            yield Check("settings", passed=False, told=f"{told}: its time-out is not above {SECONDS:.0f} seconds")
        elif host == "claude-code" and event not in PASSIVE and hook.get("onFailure") != "block":
            yield Check(
                "settings", passed=False, told=f"{told}: onFailure is not “block”, so a failed hook lets tools run"
            )
        elif host == "codex" and not is_trusted(path, event):
            yield Check(
                "trust", passed=False, told=f"{told}: not trusted yet, so Codex skips it; trust it with /hooks in Codex"
            )
        else:
            yield Check("settings", passed=True, told=told)


def _common(host: str, event: str, work: str, decided: Callable[[str], str]) -> Iterator[Check]:
    """Yield the checks of what a hook decides, however it is asked."""
    harmless = decided(_proposal(host, event, work, "pwd"))
    yield Check("allows", harmless == "allow", f"a harmless command: {harmless}")
    destroying = decided(_proposal(host, event, work, "rm -rf canary"))
    yield Check("denies", destroying == "deny", f"a destroying command: {destroying}")
    garbled = decided("no JSON")
    yield Check("garbled", garbled in {"refused", "block"}, f"an event that cannot be read: {garbled}")


def _posted_canaries(host: str, event: str, url: str, folder: Path) -> Iterator[Check]:
    token = os.environ.get(TOKEN_VARIABLE, "")
    yield Check(
        "token",
        bool(token),
        f"{TOKEN_VARIABLE} is {'exported' if token else 'not exported here; without it everything is refused'}",
    )
    with tempfile.TemporaryDirectory(prefix="riskgate-canary-") as work:
        try:
            token = token or (folder / TOKEN_FILE).read_text(encoding="utf-8").strip()
            yield from _common(host, event, work, lambda payload: _posted(url, token, payload))
            stranger = _posted(url, "unknown", _proposal(host, event, work, "pwd"))
        except OSError as error:
            told = f"{url} does not answer ({getattr(error, 'reason', None) or error}); start `riskgate hook serve`"
            yield Check("serves", passed=False, told=told)
            return
    yield Check("stranger", stranger == "deny", f"a harmless command with a token that is not known: {stranger}")


def _canaries(host: str, event: str, command: str, folder: Path) -> Iterator[Check]:
    with tempfile.TemporaryDirectory(prefix="riskgate-canary-") as work:
        yield from _common(host, event, work, lambda payload: _decided(command, payload))
        with tempfile.TemporaryDirectory(prefix="riskgate-away-") as away:
            save(Path(away), HelperSettings(target=f"127.0.0.1:{_closed_port()}", idle_seconds=1.0))
            there, elsewhere = (f"--dir {shlex.quote(one)}" for one in (str(folder), away))
            if there not in command:
                yield Check("away", passed=False, told=f"the hook does not use {folder}")
                return
            without = _decided(command.replace(there, elsewhere), _proposal(host, event, work, "pwd"))
            yield Check("away", without in {"deny", "refused"}, f"while RiskGate is away: {without}")


def _proposal(host: str, event: str, work: str, command: str) -> str:
    proposed: dict[str, Any] = {
        "session_id": f"doctor-{secrets.token_hex(8)}",
        "cwd": work,
        "hook_event_name": event,
        "tool_name": _SHELL[host],
        "tool_input": {"command": command},
        "tool_use_id": f"canary-{secrets.token_hex(8)}",
    }
    return json.dumps(proposed)


def _decided(command: str, payload: str) -> str:
    """Return what a hook's command line answers: allow, deny, refused, or what else a host would take for a yes."""
    try:
        done = subprocess.run(  # noqa: S603 - the command line of the user's own settings, as the host runs it
            ["/bin/sh", "-c", command],
            input=payload,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "no answer in time"
    if done.returncode == 2:  # noqa: PLR2004 - what hosts take for a refusal
        return "refused"
    decision = _decision_in(done.stdout)
    return decision if done.returncode == 0 and decision else f"no decision (exit code {done.returncode})"


def _posted(url: str, token: str, payload: str) -> str:
    """Return what an HTTP hook answers, as the host reads it. Raise OSError if nobody does."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(url, payload.encode(), headers)  # noqa: S310 - of the user's own settings
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is on this machine
    try:
        with opener.open(request, timeout=_LIMIT_SECONDS) as answer:
            return _decision_in(answer.read()) or "no decision"
    except urllib.error.HTTPError as error:
        return f"no decision (status {error.code})"


def _decision_in(text: str | bytes) -> str:
    try:
        found = json.loads(text)
        inner = found.get("hookSpecificOutput", {})
        return str(found.get("decision") or inner.get("permissionDecision", ""))
    except (ValueError, AttributeError):
        return ""


def _closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
