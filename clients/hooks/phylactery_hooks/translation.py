"""Translation: a host's tool call as a call of RiskGate's catalog, and the bound call back as the host's input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from phylactery_hooks.shell.judge import judge, written
from phylactery_hooks.shell.verdict import Effect, Verdict, strongest
from phylactery_hooks.workspace import Workspace

Kind = Literal["shell", "read", "list", "search", "write", "patch", "fetch", "query", "step", "memory", "skill"]

EFFECTS: Final = tuple(effect.name.lower() for effect in Effect)
SHELL: Final = tuple(f"shell_{name}" for name in EFFECTS)
FILE: Final = tuple(f"file_{name}" for name in ("read", "write", "outside", "unknown", "secret", "settings"))
OTHERS: Final = ("web_fetch", "web_search", "agent_step")
NAMES: Final = frozenset((*SHELL, *FILE, *OTHERS))
"""The tools of the catalog that the bundle of this package holds."""

_REPOSITORIES: Final = frozenset({".git", ".svn", ".hg", ".bzr", ".jj", ".sl"})
_PATCHED: Final = re.compile(r"\*\*\* (Add File|Update File|Delete File|Move to):(.*)")


@dataclass(frozen=True, slots=True)
class HostTool:
    """A tool of a host: what it does, and which field of its input says to what."""

    kind: Kind
    fields: tuple[str, ...] = ()
    """Names under which hosts and their versions know the field; the first that is there counts."""
    needed: bool = True
    names_only: bool = False
    """A search that shows names of files unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call for RiskGate: its tool says what the call does, its arguments are the host's input."""

    tool: str
    arguments: dict[str, Any] = field(repr=False)
    reason: str
    field: str = ""
    key: str = ""

    def input_of(self, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Return bound arguments as the host's input."""
        if not self.key:
            return dict(bound)
        found: dict[str, Any] = dict(bound["input"])
        if self.field:
            found[self.field] = bound[self.key]
        return found


_KEYS: Final = {
    "shell": "command",
    "fetch": "url",
    "query": "query",
    "patch": "patch",
    "memory": "text",
    "skill": "text",
}
_PREFIXES: Final = {
    "shell": ("shell", ""),
    "fetch": ("web", "fetch"),
    "query": ("web", "search"),
    "step": ("agent", "step"),
}
_STEP: Final = HostTool("step")
_SEARCHES: Final = HostTool("search", ("path", "dir_path"), needed=False)

TOOLS: Final[dict[str, dict[str, HostTool]]] = {
    "claude-code": {
        "Bash": HostTool("shell", ("command",)),
        "Read": HostTool("read", ("file_path",)),
        "Write": HostTool("write", ("file_path",)),
        "Edit": HostTool("write", ("file_path",)),
        "MultiEdit": HostTool("write", ("file_path",)),
        "NotebookEdit": HostTool("write", ("notebook_path",)),
        "NotebookRead": HostTool("read", ("notebook_path",)),
        "LS": HostTool("list", ("path",), needed=False),
        "Glob": HostTool("list", ("path",), needed=False),
        "Grep": HostTool("search", ("path",), needed=False, names_only=True),
        "WebFetch": HostTool("fetch", ("url",)),
        "WebSearch": HostTool("query", ("query",)),
        "Skill": HostTool("skill", ("skill", "command")),
        **dict.fromkeys(
            (
                "Agent", "AskUserQuestion", "BashOutput", "EnterPlanMode", "ExitPlanMode", "KillShell", "Task",
                "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch",
            ),
            _STEP,
        ),
    },
    "codex": {
        "Bash": HostTool("shell", ("command",)),
        "apply_patch": HostTool("patch", ("command", "input", "patch")),
        "view_image": HostTool("read", ("path",)),
        "update_plan": _STEP,
    },
    "gemini": {
        "run_shell_command": HostTool("shell", ("command",)),
        "read_file": HostTool("read", ("file_path", "absolute_path")),
        "write_file": HostTool("write", ("file_path",)),
        "replace": HostTool("write", ("file_path",)),
        "list_directory": HostTool("list", ("dir_path", "path"), needed=False),
        "glob": HostTool("list", ("dir_path", "path"), needed=False),
        "search_file_content": _SEARCHES,
        "grep_search": _SEARCHES,
        "web_fetch": HostTool("fetch", ("prompt", "url")),
        "google_web_search": HostTool("query", ("query",)),
        "save_memory": HostTool("memory", ("fact",)),
        "write_todos": _STEP,
    },
}  # fmt: skip
_FOLDERS: Final = frozenset({"dir_path", "directory"})
_PATHS: Final = _FOLDERS | {"file_path", "absolute_path", "notebook_path", "path"}
_OF_FILES: Final = frozenset({"read", "list", "search", "write", "patch"})
_PLAIN: Final = _FOLDERS | {"timeout", "description", "run_in_background"}
"""Fields beside a command that change nothing of what it does to files."""


def translate(host: str, tool: str, given: Mapping[str, Any], workspace: Workspace) -> Proposal:
    """Return the call for RiskGate. A tool that is not known here keeps its name, for a catalog of the user's own."""
    known = TOOLS[host].get(tool)
    if known is None:
        return Proposal(f"host.{tool}" if tool in NAMES else tool, dict(given), "this tool is not known here")
    name, key, value = _subject(known, given)
    if len(given.keys() & _aliases(known)) > 1:
        name, value = "", None  # which of them counts is known to the host alone
    arguments: dict[str, Any] = {"tool": tool, "directory": workspace.directory, "input": dict(given)}
    if name:
        arguments[key] = arguments["input"].pop(name)
    prefix, action = _PREFIXES.get(known.kind, ("file", ""))
    if value is None:
        return Proposal(f"{prefix}_{action or 'unknown'}", {**arguments, "input": dict(given)}, "its input is unusual")
    there = _standing(given, workspace) if known.kind == "shell" else workspace
    verdict = _verdict(known, value, given, there)
    if known.kind in _OF_FILES and not there.visible:
        verdict = strongest([verdict, Verdict(Effect.OUTSIDE, "the workspace cannot be seen from here")])
    if known.kind in _OF_FILES and there.wide:
        verdict = strongest([verdict, Verdict(Effect.OUTSIDE, "the workspace is the home folder or one around it")])
    return Proposal(f"{prefix}_{action or verdict.effect.name.lower()}", arguments, verdict.reason, name, key)


def _aliases(known: HostTool) -> frozenset[str]:
    """Return the names of which a host reads one, whichever its version knows."""
    if known.kind == "shell":
        return _FOLDERS
    return frozenset(known.fields) | (_PATHS if known.kind in _OF_FILES else frozenset())


def _subject(known: HostTool, given: Mapping[str, Any]) -> tuple[str, str, str | None]:
    """Return the field that says to what a tool does something, its argument's name, and its text if it is one."""
    key = _KEYS.get(known.kind, "path")
    name = next((one for one in known.fields if one in given), "")
    if not name:
        return "", key, None if known.fields and known.needed else ""
    value = given[name]
    return (name, key, value) if isinstance(value, str) and (value or not known.needed) else ("", key, None)


def _standing(given: Mapping[str, Any], workspace: Workspace) -> Workspace:
    """Return where a command starts if its input names a folder, as that of some hosts does."""
    named = given.get("dir_path") or given.get("directory")
    return workspace.at(workspace.place(named).real) if isinstance(named, str) and named else workspace


def _verdict(known: HostTool, value: str, given: Mapping[str, Any], there: Workspace) -> Verdict:
    if known.kind == "shell":
        verdict = judge(value, there)
        if not _PLAIN.issuperset(given.keys() - {*known.fields}):
            return strongest([verdict, Verdict(Effect.UNKNOWN, "its input has fields that are not known here")])
        return verdict
    if known.kind in {"read", "list", "search", "write"} and not _is_plain(value):
        return Verdict(Effect.OUTSIDE, "its path is written in an unusual way")
    match known.kind:
        case "write":
            return written(there.place(value), there)
        case "patch":
            return _patched(value, there)
        case "memory":
            return Verdict(Effect.UNKNOWN, "it writes what later sessions obey")
        case "skill":
            return Verdict(Effect.UNKNOWN, "a skill may run commands before RiskGate sees them")
        case "read" | "list" | "search":
            return _read(known, value, given, there)
        case "fetch" | "query":
            return Verdict(Effect.NETWORK, "it reaches the network")
        case _:
            return Verdict(Effect.READ, "it is a step of the agent's own")


def _read(known: HostTool, value: str, given: Mapping[str, Any], there: Workspace) -> Verdict:
    place = there.place(value or ".")
    pattern = given.get("pattern") if known.kind == "list" else None
    if isinstance(pattern, str) and (".." in pattern.split("/") or pattern.startswith(("/", "~"))):
        return Verdict(Effect.OUTSIDE, "its pattern may leave the workspace")
    if known.kind != "list" and place.secret:
        return Verdict(Effect.SECRET, "it touches a file that looks like a secret")
    if not (place.inside or place.readable):
        return Verdict(Effect.OUTSIDE, "it touches a file outside the workspace")
    shows_names = given.get("output_mode", "files_with_matches" if known.names_only else "") == "files_with_matches"
    if known.kind == "search" and not shows_names and _meets_secrets(place.real, given, there):
        return Verdict(Effect.SECRET, "it searches where secrets are, or too many files to tell")
    return Verdict(Effect.READ, "it only reads in the workspace")


def _is_plain(path: str) -> bool:
    """Return True if no host can read the path in a way of its own: hosts expand a tilde and drop spaces around."""
    return path == path.strip() and not path.startswith("~") and (path.isprintable() or not path)


def _meets_secrets(real: str, given: Mapping[str, Any], there: Workspace) -> bool:
    only = [one for one in (given.get("glob"), given.get("include")) if isinstance(one, str) and one]
    if not all(re.fullmatch(r"(?:\*\*/)?[\w.*?\-]+", one) for one in only):
        only = []
    names: Iterable[str] = [one.removeprefix("**/") for one in only]
    return there.holds_secrets(real, hidden=True, excluded=_REPOSITORIES, only=names)


def _patched(patch: str, there: Workspace) -> Verdict:
    lines = [_PATCHED.fullmatch(line.strip()) for line in patch.splitlines()]  # Codex drops the spaces around, too
    found = [(one[1], one[2].strip()) for one in lines if one]
    if not found:
        return Verdict(Effect.UNKNOWN, "no file of the patch can be told")
    verdicts = [written(there.place(path), there) for _, path in found]
    if not all(_is_plain(path) for _, path in found):
        verdicts.append(Verdict(Effect.OUTSIDE, "a path is written in an unusual way"))
    if any(action == "Delete File" for action, _ in found):
        verdicts.append(Verdict(Effect.UNKNOWN, "it deletes a file"))
    return strongest(verdicts)
