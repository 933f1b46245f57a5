"""Scan: a look at a command that is not fully read, for what must be blocked or named all the same.

It may only make a verdict worse. It errs on the side of seeing too much: what it looks at is asked about anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tree_sitter import Node

from phylactery_hooks.shell.programs import (
    DESTROYERS,
    NETWORK,
    NETWORK_GIT,
    NETWORK_MANAGERS,
    NETWORK_SUB,
    PRINTS_SECRETS,
    PROGRAMS,
    SHELLS,
)
from phylactery_hooks.shell.syntax import nodes
from phylactery_hooks.shell.verdict import Effect, Verdict, strongest
from phylactery_hooks.workspace import Workspace

_SPLIT: Final = re.compile(r"[\s;|&()<>`$\"'{},=\\]+")
_PLAIN: Final = re.compile(r"[\w./\-]+|>", re.ASCII)
_QUOTES: Final = re.compile(r"[\"'\\]")
_MAX_TOKENS: Final = 4_000
_GIT_LOSES: Final = {
    "reset": ("--hard", "--merge", "--keep"),
    "clean": ("-f", "--force", "-fd", "-fdx", "-fx", "-df", "-xdf", "-dfx", "-xfd", "-ffdx"),
    "checkout": ("-f", "--force", "--", "."),
    "restore": (),
    "branch": ("-D", "-d", "--delete"),
    "push": ("-f", "--force", "--force-with-lease", "--mirror", "--delete", "-d", "--prune"),
    "stash": ("drop", "clear"),
    "reflog": ("expire", "delete"),
    "filter-branch": (),
    "filter-repo": (),
    "update-ref": ("-d",),
    "tag": ("-d", "--delete"),
    "gc": ("--prune",),
    "worktree": ("remove", "prune"),
    "switch": ("-f", "--force", "--discard-changes"),
    "rm": ("-r", "-f", "-rf", "--force"),
}
"""Commands of Git that lose work, and the words that make them do so; with none, the command alone does."""


def worst(text: str, verdict: Verdict, workspace: Workspace) -> Verdict:
    """Return the verdict, or a worse one that some command in the text gives reason for."""
    found = [verdict]
    commands, raw = _commands(text)
    names = [words[0] for words in commands if words]
    clear = not raw and all(_PLAIN.fullmatch(one) for one in names)
    standing = clear and not {"cd", "pushd", "popd"}.intersection(names)
    for words in commands:
        if clear and words and words[0] in PROGRAMS:
            found.extend(_paths(words, workspace))  # it runs none of its words
        elif not (standing and words and words[0] == "rm" and _removes_little(words[1:], workspace)):
            found.extend(_of(words[:_MAX_TOKENS], workspace))
    if raw:
        found.extend(_of(raw[:_MAX_TOKENS], workspace))
    highest = strongest(found)
    return Verdict(highest.effect, highest.reason, verdict.writes)


def _commands(text: str) -> tuple[list[list[str]], list[str]]:
    """Return the words of every command, and all words of the text where one of them may be a script itself."""
    root = nodes(text[: _MAX_TOKENS * 20])
    raw = root.has_error or "$(" in text or "`" in text
    found: list[list[str]] = []
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        stack.extend(node.children)
        if node.type in {"command", "declaration_command", "unset_command"}:
            words = [_bare(child) for child in node.children]
            raw = raw or any(one.rpartition("/")[2] in SHELLS for one in words)
            found.append(words)
        elif node.type == "file_redirect":
            found.append([">", *(_bare(child) for child in node.children)])
        elif node.type in {"function_definition", "command_substitution", "process_substitution", "expansion"}:
            raw = True
    return found, [one for one in _SPLIT.split(text) if one] if raw else []


def _removes_little(words: Sequence[str], workspace: Workspace) -> bool:
    """Return True if ``rm`` with these words loses nothing that Git or a tool does not bring back."""
    paths = [one for one in words if not re.fullmatch("-[rRfv]+", one)]
    return bool(paths) and all(_PLAIN.fullmatch(one) and workspace.removable(one) for one in paths)


def _bare(node: Node) -> str:
    return _QUOTES.sub("", (node.text or b"").decode("utf-8", "replace"))


def _of(words: Sequence[str], workspace: Workspace) -> Iterator[Verdict]:
    names = [one.rpartition("/")[2] for one in words]
    for index, name in enumerate(names):
        rest = words[index + 1 :]
        if reason := _destroys(name, rest):
            yield Verdict(Effect.DESTROY, reason)
        elif _reaches_out(name, rest):
            yield Verdict(Effect.NETWORK, "it reaches the network")
        elif name in PRINTS_SECRETS and index == 0 and (name != "env" or all(one.startswith("-") for one in rest)):
            yield Verdict(Effect.SECRET, "it prints or changes the environment or a store of secrets")
    yield from _paths(words, workspace)


def _paths(words: Sequence[str], workspace: Workspace) -> Iterator[Verdict]:
    """Yield verdicts for the words that name settings or what looks like a secret."""
    for word in words:
        value = word.partition("=")[2] if word.startswith("-") else word
        if not 0 < len(value) < 500 or "\0" in value:  # noqa: PLR2004 - longer ones are no paths
            continue
        place = workspace.place(value)
        if place.host:
            yield Verdict(Effect.SETTINGS, "it names settings or hooks, which run by themselves")
        elif place.secret:
            yield Verdict(Effect.SECRET, "it touches a file that looks like a secret")


def _destroys(name: str, rest: Sequence[str]) -> str:
    flags = [one for one in rest if one.startswith("-")]
    short = "".join(one[1:] for one in flags if not one.startswith("--"))
    if name == "rm" and ("r" in short.lower() or any(_abbreviates(one, "--recursive") for one in flags)):
        return "it deletes folders with all they hold"
    if name == "git":
        return _git_loses(rest)
    if name == "find" and "-delete" in rest:
        return "it deletes what it finds"
    if name == "dd" and not any(one.startswith("of=") or one == "of" for one in rest):
        return ""
    if name in {"chmod", "chown"} and "R" in short:
        return "it changes the rights of whole folders"
    return "it destroys data or stops processes" if name in DESTROYERS or name.startswith("mkfs.") else ""


def _git_loses(rest: Sequence[str]) -> str:
    for index, word in enumerate(rest):
        if word not in _GIT_LOSES:
            continue
        wanted, after = _GIT_LOSES[word], rest[index + 1 :]
        if word == "restore" and "--staged" in after and "--worktree" not in after:
            return ""
        if word == "clean" and any(one.startswith("-") and not one.startswith("--") and "f" in one for one in after):
            return "it loses work that git does not keep"
        if not wanted or any(one == two or _abbreviates(one, two) for one in after for two in wanted):
            return "it loses work that git does not keep"
        if word == "push" and any(one.startswith(("+", ":")) for one in after):
            return "it loses work that git does not keep"
        return ""
    return ""


def _abbreviates(word: str, option: str) -> bool:
    return len(word) >= 4 and word.startswith("--") and option.startswith(word.partition("=")[0])  # noqa: PLR2004 - --x


def _reaches_out(name: str, rest: Sequence[str]) -> bool:
    if name in NETWORK or "/dev/tcp/" in name or "/dev/udp/" in name:
        return True
    if name == "git":
        return bool(NETWORK_GIT.intersection(rest[:6]))
    return name in NETWORK_MANAGERS and bool(NETWORK_SUB.intersection(rest[:6]))
