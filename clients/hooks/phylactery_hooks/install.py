"""Installation: writes the hooks into a host's settings, with the options under which they fail closed.

What is there is kept, the file is replaced in one step, its old version stays beside it, and doing it again changes
nothing.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from phylactery_hooks.hook import PASSIVE, SECONDS
from phylactery_hooks.hosts import EVENTS, Kind
from phylactery_hooks.settings import PATH, TOKEN_VARIABLE, write_private

TIMEOUT_SECONDS: Final = int(SECONDS) + 5
"""The time-out in a host's settings: the hook process answers earlier."""
_ADDRESS: Final = re.compile(r"http://(?:127\.0\.0\.1|localhost|\[::1\]):\d+/?")
_OURS: Final = ("phylactery-hook", "phylactery_hooks.hook")
_TOOLS: Final = frozenset({Kind.BEFORE, Kind.AFTER, Kind.FAILED})
_SETTINGS: Final = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
}


class InstallError(Exception):
    """The settings cannot be read or written; the text says why."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where the hooks are, whether anything changed, and the copy of the file as it was."""

    path: Path
    changed: bool
    backup: Path | None


def settings_path(host: str, home: Path) -> Path:
    """Return a host's settings file of a user, or of a project if ``home`` is the project's folder."""
    return home / _SETTINGS[host]


def hook_command(host: str, event: str, folder: Path) -> str:
    """Return the command line of a hook, with whole paths, so that no folder decides which program it is."""
    isolated = [sys.executable, "-I", "-c", "import phylactery_hooks.hook"]
    found = subprocess.run(isolated, capture_output=True, check=False, timeout=60).returncode == 0  # noqa: S603 - ours
    start = "from phylactery_hooks.hook import main; main()"  # the fastest way in
    line = shlex.join([sys.executable, "-I" if found else "-P", "-c", start, host, event, "--dir", str(folder)])
    return f"{line} || exit {0 if event in PASSIVE else 2}"  # what cannot start, or is killed, refuses as well


def http_hook(host: str, url: str) -> dict[str, Any]:
    """Return a hook that posts to `riskgate hook serve`; the token stays in the environment, out of the settings."""
    return {
        "type": "http",
        "url": f"{url.rstrip('/')}{PATH}{host}",
        "headers": {"Authorization": f"Bearer ${TOKEN_VARIABLE}"},
        "allowedEnvVars": [TOKEN_VARIABLE],
    }


def check_project(project: Path) -> None:
    """Raise InstallError if the hook's own Python is in the project, where the agent may change it."""
    if Path(sys.prefix).resolve().is_relative_to(project.resolve()):
        raise InstallError("the hook is installed in the project itself, where the agent could change it; use pipx")


def install(host: str, path: Path, folder: Path, *, url: str = "") -> Installed:
    """Write the hooks of a host that use the helper of a folder, over HTTP if its address is given.

    Raise InstallError.
    """
    if url and host != "claude-code":
        raise InstallError(f"{host} starts commands and posts no events; leave --http out")
    if url and not _ADDRESS.fullmatch(url):
        raise InstallError("--http takes the address that `riskgate hook serve` prints, such as http://127.0.0.1:50058")
    path = path.resolve()
    old = _read(path)
    text = _with_codex(old, folder) if host == "codex" else _with_json(host, old, folder, url)
    if text == old:
        return Installed(path, changed=False, backup=None)
    backup = None
    if path.exists():
        backup = path.with_name(f"{path.name}.before-riskgate-{time.strftime('%Y%m%d-%H%M%S')}")
        shutil.copy2(path, backup)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, text, mode=path.stat().st_mode & 0o777 if backup is not None else 0o600)
    return Installed(path, changed=True, backup=backup)


def hooks_in(host: str, path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the hooks of ours in a settings file, by event. Raise InstallError."""
    found = _parsed(host, _read(path)).get("hooks", {})
    groups = found if isinstance(found, Mapping) else {}
    out: dict[str, list[dict[str, Any]]] = {}
    for event in EVENTS[host]:
        for group in groups.get(event, []):
            out.setdefault(event, []).extend(dict(one) for one in group.get("hooks", []) if _is_ours(one))
    return out


def is_trusted(path: Path, event: str) -> bool:
    """Return True if Codex has stored that the user trusts a hook of ours; it skips others without a word."""
    hooks = _parsed("codex", _read(path)).get("hooks", {})
    label = "".join(f"_{one.lower()}" if one.isupper() else one for one in event).lstrip("_")
    for number, group in enumerate(hooks.get(event, [])):
        for index, one in enumerate(group.get("hooks", [])):
            state = hooks.get("state", {}).get(f"{path.resolve()}:{label}:{number}:{index}", {})
            if _is_ours(one) and state.get("trusted_hash") and state.get("enabled", True):
                return True
    return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise InstallError(f"settings file '{path}' cannot be read") from None


def _parsed(host: str, text: str) -> dict[str, Any]:
    try:
        found = tomlkit.parse(text).unwrap() if host == "codex" else json.loads(text or "{}")
    except (ValueError, TOMLKitError):
        raise InstallError(f"the settings of {host} are not readable; nothing was changed") from None
    if not isinstance(found, dict):
        raise InstallError(f"the settings of {host} are not an object; nothing was changed")
    return found


def _with_json(host: str, old: str, folder: Path, url: str) -> str:
    settings = _parsed(host, old)
    hooks = settings.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise InstallError("'hooks' in the settings is not an object; nothing was changed")
    for event, kind in EVENTS[host].items():
        groups = [one for one in (_without_ours(group) for group in hooks.get(event, [])) if one]
        hook: dict[str, Any] = {"type": "command", "command": hook_command(host, event, folder)}
        if url:
            hook = http_hook(host, url)
        if host == "gemini":
            hook |= {"name": "riskgate", "timeout": TIMEOUT_SECONDS * 1000}
        else:
            hook["timeout"] = TIMEOUT_SECONDS
            if event not in PASSIVE:
                hook["onFailure"] = "block"
        named = {"matcher": "*"} if kind in _TOOLS else {}
        hooks[event] = [*groups, {**named, "hooks": [hook]}]
    if host == "claude-code" and settings.get("disableAllHooks"):
        raise InstallError("the settings switch all hooks off (disableAllHooks); nothing was changed")
    return old if json.loads(old or "{}") == settings else json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _with_codex(old: str, folder: Path) -> str:
    before = _parsed("codex", old)
    if not before.get("features", {}).get("hooks", True):
        raise InstallError("the settings switch hooks off (features.hooks); nothing was changed")
    document = tomlkit.parse(old)
    hooks = document.setdefault("hooks", tomlkit.table(is_super_table=True))
    for event, kind in EVENTS["codex"].items():
        wanted = {"type": "command", "command": hook_command("codex", event, folder), "timeout": TIMEOUT_SECONDS}
        groups = [one.unwrap() if hasattr(one, "unwrap") else one for one in hooks.get(event, [])]
        if any(group.get("hooks") == [wanted] for group in groups):
            continue  # untouched: what Codex trusts is this text at this place
        array = tomlkit.aot()
        for group in [one for one in (_without_ours(group) for group in groups) if one]:
            array.append(_codex_group(group))
        array.append(_codex_group({**({"matcher": "*"} if kind in _TOOLS else {}), "hooks": [wanted]}))
        hooks[event] = array
    text = tomlkit.dumps(document)
    return old if tomlkit.parse(text).unwrap() == before else text


def _codex_group(group: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    for key, value in group.items():
        if key != "hooks":
            table[key] = value
    inner = tomlkit.aot()
    for one in group.get("hooks", []):
        hook = tomlkit.table()
        hook.update(one)
        inner.append(hook)
    table["hooks"] = inner
    return table


def _without_ours(group: Any) -> dict[str, Any] | None:
    """Return a group of hooks without ours, None if nothing else is in it. Raise InstallError."""
    if not isinstance(group, Mapping) or not isinstance(group.get("hooks", []), list):
        raise InstallError("'hooks' in the settings has an unusual form; nothing was changed")
    hooks = [one for one in group.get("hooks", []) if not _is_ours(one)]
    return {**group, "hooks": hooks} if hooks or "hooks" not in group else None


def _is_ours(hook: Any) -> bool:
    if not isinstance(hook, Mapping):
        return False
    command, url = hook.get("command"), hook.get("url")
    return (isinstance(command, str) and any(name in command for name in _OURS)) or (
        isinstance(url, str) and url.partition(PATH)[2] in EVENTS
    )
