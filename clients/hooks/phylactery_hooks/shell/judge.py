"""Judge: what a shell command does, told by its syntax and by lists of what is harmless.

Only exact, listed programs with exact, listed options count as harmless. The judge runs nothing; it looks at the file
system to resolve links and patterns, and to find out whether a search would meet a secret.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from phylactery_hooks.shell import awk, scan
from phylactery_hooks.shell.options import Arguments, Grammar, NotListedError, Operands, grammar, read
from phylactery_hooks.shell.programs import (
    FED,
    GIT,
    GIT_NESTED,
    INTERPRETERS,
    MODULES,
    PASSING,
    PROGRAMS,
    RUNNERS,
    VERSIONS,
    VERSIONS_RUN,
)
from phylactery_hooks.shell.syntax import Pipeline, SimpleCommand, UnreadableError, Word, parse
from phylactery_hooks.shell.verdict import Effect, Verdict, strongest
from phylactery_hooks.workspace import MAX_MATCHES, Place, Workspace

_READS: Final = Verdict(Effect.READ, "it only reads in the workspace")
_RUNS: Final = Verdict(Effect.RUN, "it runs code of the workspace")
_SECRET: Final = Verdict(Effect.SECRET, "it touches a file that looks like a secret")
_OUTSIDE: Final = Verdict(Effect.OUTSIDE, "it touches a file outside the workspace")
_SETTINGS: Final = Verdict(Effect.SETTINGS, "it writes settings or hooks, which run by themselves")

_NAME: Final = re.compile(r"[A-Za-z0-9_.:/\-]+")
_ADDRESS: Final = r"(?:\d+|\$|/(?:[^/\\\n]|\\[^\n])*/)"
_SED_LINES: Final = re.compile(rf"{_ADDRESS}(?:,(?:{_ADDRESS}|\+\d+))?[pd=]")
_SED_REPLACES: Final = tuple(
    re.compile(rf"s{mark}(?:[^{mark}\\\n]|\\[^\n])*{mark}(?:[^{mark}\\\n]|\\[^\n])*{mark}[gpI0-9]*")
    for mark in ("/", r"\|", ",", "#")
)
_JQ_NAMES: Final = re.compile(
    r"\b(?:env|ENV|import|include|input_filename|modulemeta|debug|stderr|getpath|halt_error|\$__)\b"
)
_FORMAT: Final = re.compile(r"(?:[^%]|%[sb%])*")
_FIND: Final = {
    "flag": (
        "-print -print0 -empty -not -and -or -a -o -ls -prune -depth -xdev -mount -readable -writable "
        "-executable ! ( ) -true -false -daystart"
    ).split(),
    "value": (
        "-name -iname -path -ipath -wholename -regex -iregex -type -maxdepth -mindepth -size -mtime -mmin "
        "-ctime -cmin -atime -amin -perm -user -group -links -regextype -printf"
    ).split(),
    "file": ["-newer", "-anewer", "-cnewer", "-samefile"],
}
_SED: Final = grammar("-n -E -r -s -z -e= --quiet --silent --regexp-extended --expression=", Operands.SEARCHED)
_SED_IN_PLACE: Final = grammar("-i -n -E -r -e= --in-place --regexp-extended --expression=", Operands.SEARCHED)
_AWK: Final = grammar("-F=", Operands.SEARCHED)
_JQ: Final = grammar(
    "-r -c -e -s -n -S -a -j -M -C --raw-output --compact-output --slurp --sort-keys --exit-status --null-input --tab "
    "--indent= --monochrome-output --color-output"
)
_COPY: Final = grammar("-p -v -f -n -i --force --no-clobber --verbose --preserve", Operands.WRITTEN)
_MAGIC: Final = re.compile(r"^:[^/0-9A-Za-z.]|[*?\[]")
_REMOVE: Final = grammar("-r -R -f -v -d --recursive --force --verbose --dir", Operands.WRITTEN)
_FILE_TESTS: Final = frozenset("-e -f -d -r -w -x -s -L -h".split())
_NUMBER_TESTS: Final = frozenset("-eq -ne -lt -le -gt -ge".split())
_PASSED: Final = re.compile(r"-{0,2}[\w.][\w.,:/=@\-]*")
_FILTERS: Final = {
    "grep": ("-[viEFw]+", 1),
    "sort": ("-[urn]+", 0),
    "uniq": ("-u", 0),
    "head": (r"-n?\d+", 0),
    "tail": (r"-n?\d+", 0),
}
"""Programs that let lines through, with their options and how many other words they have."""
_HARMLESS: Final = re.compile(
    r"[\w./*\-]*\.(?:py|pyi|js|jsx|ts|tsx|go|rs|java|c|h|cc|cpp|hpp|rb|md|rst|css|html|proto)"
)
"""Patterns that Git resolves by itself and that fit no secret; secrets of these endings are told by their index."""
_ONLY_NAMES: Final = "-s --no-patch --stat --shortstat --numstat --summary --name-only --name-status -q --quiet".split()
_PLAIN_PATTERN: Final = re.compile(r"[\w.*?\-]+")


def judge(command: str, workspace: Workspace) -> Verdict:
    """Return what a command does, started in the workspace's current folder."""
    if not workspace.usable:
        return scan.worst(command, Verdict(Effect.OUTSIDE, "the shell does not stand in the workspace"), workspace)
    try:
        pipelines = parse(command, workspace.matches)
        return strongest(list(_Script(workspace).verdicts(pipelines)))
    except RecursionError:
        return scan.worst(command, Verdict(Effect.UNKNOWN, "it is nested too deep"), workspace)
    except (UnreadableError, NotListedError) as error:
        return scan.worst(command, Verdict(Effect.UNKNOWN, str(error)), workspace)


class _Script:
    """Judges the commands of one script in order, and where the shell stands by then."""

    def __init__(self, workspace: Workspace) -> None:
        self._there = workspace
        self._moved = False
        """A command renamed or copied what cannot be looked at now, so nothing may follow it."""
        self._wrote = False
        self._removed = False

    def verdicts(self, pipelines: Sequence[Pipeline]) -> Iterator[Verdict]:
        """Yield a verdict of every command. Raise UnreadableError or NotListedError."""
        entering = True
        for pipeline in pipelines:
            if self._moved:
                raise NotListedError("something follows a copy or a move")
            first = pipeline.commands[0]
            if len(pipeline.commands) == 1 and first.words and first.words[0].text == "cd":
                if not entering or pipeline.connector == "||":
                    raise NotListedError("it changes the folder in the middle")
                self._enter(first)
                continue
            entering = False
            for index, command in enumerate(pipeline.commands):
                if index and command.words and command.words[0].text == "xargs":
                    yield from self._xargs(pipeline.commands[:index], command)
                else:
                    yield from self._command(command)
            if self._moved and len(pipeline.commands) > 1:
                raise NotListedError("a copy or a move is part of a pipe")
        yield _READS

    def _enter(self, command: SimpleCommand) -> None:
        if len(command.words) != 2 or command.redirections:  # noqa: PLR2004 - cd and where to
            raise NotListedError("it changes the folder in an unusual way")
        self._there = self._entered(command.words[1])

    def _entered(self, word: Word) -> Workspace:
        """Return the workspace as seen from another folder in it."""
        target = self._there.at(self._there.place(word.text).real)
        if word.glob or word.text.startswith("-") or not word.text or not target.usable:
            raise NotListedError("it changes to a folder that is not of the workspace")
        self._check_links(word.text)
        return target

    def _check_links(self, path: str) -> None:
        """Refuse a path through a link: what ``..`` means after it differs between shells and the kernel."""
        here = self._there.place(".").real
        if ".." in path.split("/") and here != self._there.directory:
            raise NotListedError("it changes the folder through a link")
        spelled: list[str] = [] if path.startswith("/") else here.split("/")[1:]
        for part in path.split("/"):
            spelled = spelled[:-1] if part == ".." else [*spelled, *([part] if part not in {"", "."} else [])]
            whole = "/" + "/".join(spelled)
            if self._there.place(whole).real != whole:
                raise NotListedError("it changes the folder through a link")

    def _command(self, command: SimpleCommand) -> Iterator[Verdict]:
        for one in command.redirections:
            yield self._write(one.target) if one.writes else self._read(one.target)
        if not command.words:
            raise NotListedError("it only redirects")
        name, *rest = command.words
        if not name.plain or name.glob or not name.text.isascii():
            raise NotListedError("the name of a program is not plain")
        yield from self._call(name, tuple(self._literal(one) for one in rest))

    def _call(self, name: Word, words: tuple[Word, ...]) -> Iterator[Verdict]:
        """Yield the verdicts of a program with its words, whichever program starts it."""
        texts = [one.text for one in words]
        if texts in (["--version"], ["-V"], ["-v"]) and name.text in VERSIONS[texts[0]]:
            yield _READS
        elif texts == ["--version"] and name.text in VERSIONS_RUN:
            yield _RUNS
        elif name.text in self._SPECIAL:
            yield from self._SPECIAL[name.text](self, words)
        elif name.text in PROGRAMS:
            yield from self._listed(name.text, PROGRAMS[name.text], words)
        else:
            yield from self._runner((name, *words))

    def _literal(self, word: Word) -> Word:
        """Return an option with a pattern in it as text where no name fits the pattern, as the shell does."""
        if word.glob and word.text.startswith("-") and not self._there.matches(word.text):
            return Word(word.text, glob=False, plain=False)
        return word

    def _listed(self, name: str, rules: Grammar, words: tuple[Word, ...]) -> Iterator[Verdict]:
        if name == "tree" and any(re.match("-[LIP].", one.text) for one in words):
            raise NotListedError("options are written together")
        found = read(rules, words)
        yield from self._files(found)
        if rules.operands is Operands.WRITTEN:
            for word in found.operands:
                yield self._write(word)
        elif rules.operands is Operands.SEARCHED:
            yield from self._search(name, found)
        elif rules.operands is Operands.TEXT:
            self._plain(found.operands)
            if name == "date" and any(not one.text.startswith("+") for one in found.operands):
                raise NotListedError("it may set the clock")
            yield _READS
        else:
            for word in found.operands:
                places = self._places(word) if name in {"diff", "strings"} else []
                if name == "strings" and (word.text.startswith("@") or (word.glob and word.text[0] in "*?")):
                    raise NotListedError("a name may stand for a file of options")
                if any(place.folder for place in places):
                    raise NotListedError("it compares folders")
                yield self._read(word, listed=rules.operands is Operands.LISTED)

    def _files(self, found: Arguments) -> Iterator[Verdict]:
        """Yield the verdicts of files that are values of options."""
        for word in found.reads:
            yield self._read(word)
        for word in found.writes:
            yield self._write(word)

    def _search(self, name: str, found: Arguments) -> Iterator[Verdict]:
        operands = list(found.operands)
        if not found.has("-e", "--regexp", "-f", "--file", "--files", "--type-list"):
            if not operands:
                raise NotListedError("it has no pattern")
            self._plain([operands.pop(0)])
        ripgrep = name == "rg"
        recursive = ripgrep or found.has("-r", "--recursive")
        hidden = (
            not ripgrep
            or self._there.unhides()
            or found.has("-.", "--hidden", "--no-ignore", "--no-ignore-vcs", "-u", "--unrestricted")
        )
        globs = [*found.options.get("-g", []), *found.options.get("--glob", []), *found.options.get("--iglob", [])]
        only = [one for one in globs if not one.startswith("!")] or found.options.get("--include", [])
        if only and found.has("--exclude"):
            raise NotListedError("which of --include and --exclude counts differs")
        hidden = hidden or bool(only)
        if not all(_PLAIN_PATTERN.fullmatch(one) for one in only):
            only = []
        excluded = frozenset(found.options.get("--exclude-dir", []))
        for word in operands or ([Word(".")] if recursive else []):
            verdict = self._read(word)
            yield verdict
            if recursive and verdict.effect is Effect.READ and not found.has("--files", "--type-list"):
                for place in self._places(word):
                    if self._there.holds_secrets(place.real, hidden=hidden, excluded=excluded, only=only):
                        yield Verdict(Effect.SECRET, "it searches where secrets are, or too many files to tell")

    def _jq(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        found = read(_JQ, words)
        if not found.operands or found.operands[0].glob or _JQ_NAMES.search(found.operands[0].text):
            raise NotListedError("its filter may read more than its input")
        for word in found.operands[1:]:
            yield self._read(word)
        yield _READS

    def _echo(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        for word in words:
            if word.glob:
                yield self._read(word, listed=True)
        yield _READS

    def _printf(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        if not words or words[0].text.startswith("-") or not _FORMAT.fullmatch(words[0].text):
            raise NotListedError("its format is not plain")
        self._plain(words)
        yield _READS

    def _find(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        rest = list(words)
        starts: list[Word] = []
        while rest and not rest[0].text.startswith(("-", "!", "(")):
            starts.append(rest.pop(0))
        for word in starts or [Word(".")]:
            yield self._read(word, listed=True)
        while rest:
            word = rest.pop(0)
            if word.glob:
                raise NotListedError("a test of find is a pattern")
            if word.text in _FIND["flag"]:
                continue
            if word.text == "-exec":
                yield from self._executed(starts, words, rest)
                continue
            if word.text not in _FIND["value"] and word.text not in _FIND["file"]:
                raise NotListedError("an action or test of find is not listed")
            if not rest:
                raise NotListedError("a test of find has no value")
            value = rest.pop(0)
            if value.glob and self._there.matches(value.text):
                raise NotListedError("a pattern of find is not quoted")
            if word.text in _FIND["file"]:
                yield self._read(value, listed=True)

    def _executed(self, starts: list[Word], words: tuple[Word, ...], rest: list[Word]) -> Iterator[Verdict]:
        """Yield the verdicts of what find runs with every file, and take it from the words that are left."""
        command: list[Word] = []
        while rest and rest[0].text not in {";", "+"}:
            command.append(rest.pop(0))
        texts = [one.text for one in command]
        if not rest or texts.count("{}") != 1 or texts[0] == "{}" or texts[-1] != "{}":
            raise NotListedError("what find runs is not clear")
        rest.pop(0)
        yield from self._fed(command[:-1], Fed(tuple(one.text for one in starts) or (".",), _names(words), split=False))

    def _xargs(self, before: Sequence[SimpleCommand], command: SimpleCommand) -> Iterator[Verdict]:
        """Yield the verdicts of what xargs runs with the names that it is given."""
        if command.redirections:
            for one in command.redirections:
                yield self._write(one.target) if one.writes else self._read(one.target)
        rest = list(command.words[1:])
        split = True
        while rest and rest[0].text.startswith("-"):
            option = rest.pop(0).text
            if option in {"-n", "-P", "-L"} and rest and rest[0].text.isdigit():
                rest.pop(0)
            elif option == "-0":
                split = False
            elif not re.fullmatch(r"-r|-t|-[nPL]\d+", option):
                raise NotListedError("an option of xargs is not listed")
        yield from self._fed(rest, self._source(before, split=split))

    def _source(self, before: Sequence[SimpleCommand], *, split: bool) -> Fed:
        """Return the files whose names go through a pipe. Raise NotListedError if they cannot be told."""
        *earlier, last = before
        if last.redirections or not last.words:
            raise NotListedError("what xargs is given is not clear")
        texts = [one.text for one in last.words]
        if earlier and _passes(texts):
            return self._source(earlier, split=split)
        if earlier:
            raise NotListedError("what xargs is given is not clear")
        if texts[0] == "find" and not any(one.startswith(("-printf", "-ls", "-exec")) for one in texts):
            if ("-print0" in texts) is split:
                raise NotListedError("what ends a name differs between find and xargs")
            starts = tuple(itertools.takewhile(lambda one: not one.startswith(("-", "!", "(")), texts[1:]))
            return Fed(starts or (".",), _names(last.words[1:]), split=split)
        if texts[:2] == ["git", "ls-files"] and split and not any(one.startswith("-") for one in texts[2:]):
            return Fed((), (), split=True)
        if texts == ["git", "diff", "--name-only"] and split:
            return Fed((), (), split=True)
        raise NotListedError("what xargs is given is not clear")

    def _fed(self, words: list[Word], fed: Fed) -> Iterator[Verdict]:
        """Yield the verdicts of a program that is given names of files by another one."""
        name = words[0].text if words else ""
        rules = PROGRAMS.get(name)
        if rules is None or name not in FED or not words[0].plain or words[0].glob:
            raise NotListedError("a program that is given names of files is not listed")
        found = read(rules, tuple(words[1:]))
        if found.has("-r", "--recursive", "-f", "--file") or found.writes or found.reads:
            raise NotListedError("an option of a program that is given names of files is not listed")
        operands = list(found.operands)
        if rules.operands is Operands.SEARCHED:
            if not operands and not found.has("-e", "--regexp"):
                raise NotListedError("it has no pattern")
            if not found.has("-e", "--regexp"):
                self._plain([operands.pop(0)])
        if operands:
            raise NotListedError("it is given other files as well")
        shows = FED[name]
        if not self._there.feeds(fed.starts, fed.names, shows=shows, split=fed.split):
            yield Verdict(
                Effect.SECRET if shows else Effect.UNKNOWN, "it is given files that may be secret or not plain"
            )
        yield _READS

    def _test(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        rest = list(words[1:] if words and words[0].text == "!" else words)
        if any(one.glob for one in rest):
            raise NotListedError("a test holds a pattern")
        texts = [one.text for one in rest]
        if len(texts) == 2 and texts[0] in _FILE_TESTS:  # noqa: PLR2004 - a test of a file
            yield self._read(rest[1], listed=True)
        elif not (
            (len(texts) == 2 and texts[0] in {"-n", "-z"})  # noqa: PLR2004 - a test of a text
            or (len(texts) == 3 and texts[1] in {"=", "==", "!="})  # noqa: PLR2004 - a comparison
            or (len(texts) == 3 and texts[1] in _NUMBER_TESTS and texts[0].isdecimal() and texts[2].isdecimal())  # noqa: PLR2004
        ):
            raise NotListedError("a test is not one of the plain ones")
        yield _READS

    def _which(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        texts = [one.text for one in words]
        if len(texts) < 2 or texts[0] not in {"-v", "-V"} or not all(_NAME.fullmatch(one) for one in texts[1:]):  # noqa: PLR2004
            raise NotListedError("a program is not listed")
        yield _READS

    def _timed(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        if not words or not words[0].plain or words[0].glob or words[0].text.startswith("-"):
            raise NotListedError("what it runs is not clear")
        yield from self._call(words[0], words[1:])

    def _limited(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        if not words or not re.fullmatch(r"\d+[smh]?", words[0].text):
            raise NotListedError("a program is not listed")
        yield from self._timed(words[1:])

    def _remove(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        operands = read(_REMOVE, words).operands
        if not operands:
            raise NotListedError("it deletes nothing")
        kinds = set()
        for word in operands:
            for path in self._there.matches(word.text) if word.glob else [word.text]:
                kinds.add(self._there.removable(path))
        if not kinds or "" in kinds:
            raise NotListedError("it deletes files")
        self._removed = True
        if kinds == {"rebuilt"}:
            yield Verdict(Effect.DELETE, "it deletes what is built again, and Git does not keep")
        else:
            yield Verdict(Effect.UNKNOWN, "it deletes what Git does not keep")

    def _sed(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        in_place = any(one.text in {"-i", "--in-place"} for one in words)
        if in_place and (sys.platform == "darwin" or any(re.match("-i.|-[a-zA-Z]+i", one.text) for one in words)):
            raise NotListedError("what -i means differs")
        found = read(_SED_IN_PLACE if in_place else _SED, words)
        scripts = [one for name in ("-e", "--expression") for one in found.options.get(name, [])]
        operands = list(found.operands)
        if not scripts:
            if not operands:
                raise NotListedError("it has no script")
            scripts = [operands.pop(0).text]
        if not all(_SED_LINES.fullmatch(one) or any(r.fullmatch(one) for r in _SED_REPLACES) for one in scripts):
            raise NotListedError("its script is not one of the plain ones")
        for word in operands:
            yield self._write(word) if in_place else self._read(word)
            if in_place:
                yield self._read(word)
        yield _READS

    def _awk(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        found = read(_AWK, words)
        if not found.operands or found.operands[0].glob or not awk.only_prints(found.operands[0].text):
            raise NotListedError("its program may do more than print")
        for word in found.operands[1:]:
            if "=" in word.text:
                raise NotListedError("it sets a variable")
            yield self._read(word)
        yield _READS

    def _copy(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        found = read(_COPY, words)
        if len(found.operands) < 2:  # noqa: PLR2004 - from and to
            raise NotListedError("it copies or moves nothing")
        *sources, target = found.operands
        if target.glob:
            raise NotListedError("its target is a pattern")
        into, made = self._there.place(target.text), self._wrote
        for word in sources:
            yield self._read(word)
            for source in (self._there.matches(word.text) if word.glob else [word.text]) or [word.text]:
                name = source.rstrip("/").rpartition("/")[2]
                if into.folder or made:  # a folder that was made just now
                    yield self._write(Word(f"{target.text}/{name}"))
                if not into.folder:
                    yield self._write(target)
        self._moved = True

    def _move(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        for word in read(_COPY, words).operands[:-1]:
            yield self._write(word)
        yield from self._copy(words)

    def _git(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        rest = words[1:] if words and words[0].text == "--no-pager" else words
        if not rest:
            raise NotListedError("it names no command of git")
        if rest[0].text == "-C" and len(rest) > 2:  # noqa: PLR2004 - a folder and a command
            yield from self._git_in(rest[1], rest[2:])
            return
        sub, rest = rest[0].text, rest[1:]
        if not self._there.plain_repository() or (self._wrote and not self._there.place(".git").folder):
            raise NotListedError("a repository in it has settings of its own")
        if sub == "commit":
            yield from self._runner((Word("git"), Word("commit"), *rest))
            return
        if sub == "remote" and [one.text for one in rest] == ["-v"]:
            yield Verdict(Effect.SECRET, "it prints addresses that may hold a password")
            return
        nested = GIT_NESTED.get((sub, rest[0].text)) if rest else None
        rules = nested or GIT.get(sub)
        if rules is None:
            raise NotListedError("a command of git is not listed")
        found = read(rules, rest[1:] if nested else rest)
        if sub == "tag" and found.operands and not found.has("-l", "--list"):
            raise NotListedError("it makes a tag")
        if rules.operands is Operands.WRITTEN:
            for word in found.operands or [Word(self._there.root)]:
                yield from self._added(word)
            yield Verdict(Effect.WRITE, "it writes the index of git")
        else:
            yield from self._shown(sub, rules, found)

    def _git_in(self, word: Word, words: tuple[Word, ...]) -> Iterator[Verdict]:
        """Yield the verdicts of a command of Git that starts in another folder of the workspace."""
        if words[0].text.startswith("-"):
            raise NotListedError("a command of git is not listed")
        stood = self._there
        self._there = self._entered(word)
        yield from self._git(words)
        self._there = stood

    def _shown(self, sub: str, rules: Grammar, found: Arguments) -> Iterator[Verdict]:
        operands = found.operands
        if rules.operands is Operands.SEARCHED and not found.has("-e"):
            self._plain(operands[:1])
            operands = operands[1:]
        if rules.operands is Operands.TEXT:
            self._plain(operands)
        else:
            listed = rules.operands is Operands.LISTED
            if _shows_text(sub, found) and self._there.tracks_secrets():
                yield Verdict(Effect.SECRET, "git keeps a file that looks like a secret")
            for word in operands:
                if not listed and _MAGIC.search(word.text) and not word.glob and not _HARMLESS.fullmatch(word.text):
                    raise NotListedError("git itself reads a pattern of names")
                yield from self._revision(word)
        yield _READS

    def _added(self, word: Word) -> Iterator[Verdict]:
        """Yield the verdicts of what goes to the index, whence git shows it."""
        yield self._write(word)
        for place in self._places(word):
            if not place.folder:
                continue
            if self._there.holds_repositories(place.real):
                raise NotListedError("a repository in it has settings of its own")
            yield from self._held(place)

    def _held(self, place: Place) -> Iterator[Verdict]:
        if self._there.holds_secrets(
            place.real, hidden=True, excluded=self._there.ignored() | {".git"}, files_too=True
        ):
            yield Verdict(Effect.SECRET, "it would add what looks like a secret, or too many files to tell")

    def _revision(self, word: Word) -> Iterator[Verdict]:
        """Yield the verdicts of a word that is a revision, a path, or both with a colon between."""
        yield self._read(word, listed=word.glob)
        if ":" in word.text and not word.glob:
            yield self._read(Word(word.text.rpartition(":")[2] or "."))

    def _runner(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        texts = [one.text for one in words]
        if texts[0] in {"python", "python3"} and texts[1:2] == ["-m"] and len(texts) > 2:  # noqa: PLR2004 - a module
            words, texts = words[2:], texts[2:]
            if (texts[0],) not in RUNNERS and texts[0] not in MODULES:
                raise NotListedError("a program is not listed")
        elif texts[0] == "npx":
            words = self._own_tool(words[2:] if texts[1:2] == ["--no-install"] else words[1:])
        elif texts[0] == "poetry" and texts[1:2] == ["run"]:
            words = words[2:]
        elif tool := re.fullmatch(r"(?:\./)?node_modules/\.bin/([\w\-]+)", texts[0]):
            words = self._own_tool((Word(tool[1]), *words[1:]))
        texts = [one.text for one in words]
        for size in (2, 1):
            rules = RUNNERS.get(tuple(texts[:size]))
            if rules is None or not all(one.plain for one in words[:size]):
                continue
            yield from self._run(tuple(texts[:size]), rules, words[size:])
            return
        yield from self._started(words)

    def _run(self, name: tuple[str, ...], rules: Grammar, words: tuple[Word, ...]) -> Iterator[Verdict]:
        """Yield the verdicts of a listed program that runs code of the workspace."""
        passed: tuple[Word, ...] = ()
        if name in PASSING and Word("--") in [Word(one.text) for one in words]:
            at = [one.text for one in words].index("--")
            words, passed = words[:at], words[at + 1 :]
        found = read(rules, words)
        if name == ("git", "commit") and not found.has("-m", "--message", "--no-edit"):
            raise NotListedError("it opens an editor")
        if any(one.text.startswith("-") for one in found.operands):
            raise NotListedError("an operand begins with a dash")
        if rules.operands is Operands.TEXT and not all(_NAME.fullmatch(one.text) for one in found.operands):
            raise NotListedError("a name is not plain")
        if name == ("npm", "run") and any(one.text == "env" for one in found.operands):
            raise NotListedError("it prints the environment")
        if name == ("go", "run") and not all(re.fullmatch(r"\.(?:/[\w.\-/]+)?", one.text) for one in found.operands):
            raise NotListedError("it may fetch what it runs")
        if name == ("cargo", "clippy") and not all(re.fullmatch(r"-[DWAF]|[\w:]+", one.text) for one in passed):
            raise NotListedError("what is passed on is not plain")
        yield from self._files(found)
        if rules.operands is Operands.LISTED:
            for word in found.operands:
                yield self._read(Word(word.text.partition("::")[0], word.glob), listed=True)
        self._check_passed(passed)
        yield _RUNS

    def _check_passed(self, words: Sequence[Word]) -> None:
        """Refuse words for a program of the workspace that name a file which is not the workspace's own."""
        for word in words:
            if word.glob or not _PASSED.fullmatch(word.text):
                raise NotListedError("what is passed on is not plain")
            for part in re.split("[=,:]", word.text):
                if part.startswith("-") and ("/" in part or ".." in part):
                    raise NotListedError("what is passed on names a file in an unusual way")
                if part and not part.startswith("-"):
                    place = self._there.place(part)
                    if place.protected or place.steers or place.secret or not place.inside:
                        raise NotListedError("what is passed on names a file that is not the workspace's own")

    def _own_tool(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """Return the words of a tool that the workspace has in it; npx would fetch another one."""
        if not words or not words[0].plain or not re.fullmatch(r"[\w\-]+", words[0].text) or self._removed:
            raise NotListedError("a program is not listed")
        if not self._there.has_tool(words[0].text):
            raise NotListedError("the workspace has no such tool, and it would be fetched")
        return words

    def _started(self, words: tuple[Word, ...]) -> Iterator[Verdict]:
        """Yield the verdicts of a script that Git keeps, started by itself or by an interpreter."""
        interpreted = words[0].text in INTERPRETERS
        rest = list(words[1:] if interpreted else words)
        if interpreted and words[0].text == "node" and rest and rest[0].text == "--check":
            rest.pop(0)
        if not rest or rest[0].glob or not (interpreted or "/" in rest[0].text) or rest[0].text.startswith(("-", "/")):
            raise NotListedError("a program is not listed")
        if not self._there.tracked(rest[0].text) or self._wrote:
            raise NotListedError("it runs a script that Git does not keep")
        self._check_passed(rest[1:])
        yield _RUNS

    def _plain(self, words: Sequence[Word]) -> None:
        """Check that text is text, and no pattern that the shell replaces."""
        if any(word.glob and (word.text.startswith("/") or self._there.matches(word.text)) for word in words):
            raise NotListedError("a pattern of file names stands where text is expected")

    def _places(self, word: Word) -> list[Place]:
        if not word.glob:
            return [self._there.place(word.text)]
        names = self._there.matches(word.text)
        if len(names) > MAX_MATCHES:
            raise NotListedError("a pattern stands for very many files")
        if any(name.startswith("-") for name in names):
            raise NotListedError("a pattern stands for a name that begins with a dash")
        return [self._there.place(name) for name in names]

    def _read(self, word: Word, *, listed: bool = False) -> Verdict:
        if word.text == "-" or not word.text:
            return _READS
        if word.glob and not self._there.place(word.text.partition("*")[0].partition("?")[0] or ".").inside:
            return _OUTSIDE
        for place in self._places(word):
            if place.secret and not listed:
                return _SECRET
            if not (place.inside or place.readable):
                return _SECRET if place.secret else _OUTSIDE
        return _READS

    def _write(self, word: Word) -> Verdict:
        if not word.text:
            raise NotListedError("it writes to no name")
        places = self._places(word) or [self._there.place(word.text)]
        self._wrote = True
        return strongest([_READS if one.real == "/dev/null" else written(one, self._there) for one in places])

    _SPECIAL: Final[dict[str, Callable[..., Iterator[Verdict]]]] = {
        "echo": _echo,
        "printf": _printf,
        "find": _find,
        "sed": _sed,
        "awk": _awk,
        "cp": _copy,
        "mv": _move,
        "git": _git,
        "jq": _jq,
        "rm": _remove,
        "test": _test,
        "command": _which,
        "time": _timed,
        "timeout": _limited,
    }


@dataclass(frozen=True, slots=True)
class Fed:
    """Names of files that a program is given: below which folders, fitting which patterns, split at blanks or not.

    Without folders they are the files in Git's index.
    """

    starts: tuple[str, ...]
    names: tuple[str, ...]
    split: bool


def _names(words: Sequence[Word]) -> tuple[str, ...]:
    """Return the patterns of which every file that find names fits one, none if that cannot be told."""
    texts = [one.text for one in words]
    if {"-o", "-or", "!", "-not", ",", "(", ")"}.intersection(texts):
        return ()
    return tuple(
        value for name, value in itertools.pairwise(texts) if name == "-name" and _PLAIN_PATTERN.fullmatch(value)
    )[:1]


def _passes(texts: Sequence[str]) -> bool:
    """Return True if a program lets some of its lines through, unchanged."""
    options = [one for one in texts[1:] if one.startswith("-")]
    rest = [one for one in texts[1:] if not one.startswith("-")]
    if texts[0] not in _FILTERS:
        return False
    allowed, operands = _FILTERS[texts[0]]
    return len(rest) == operands and all(re.fullmatch(allowed, one) for one in options)


def _shows_text(sub: str, found: Arguments) -> bool:
    """Return True if a command of Git shows what is in files."""
    if sub in {"show", "diff", "whatchanged"} and not found.has(*_ONLY_NAMES):
        return True
    return sub in {"grep", "stash"} or found.has("-p", "-u", "-U", "--patch", "--unified", "-W", "--function-context")


def written(place: Place, workspace: Workspace) -> Verdict:
    """Return the verdict of writing a file, by whichever tool."""
    if place.protected:
        return _SETTINGS
    if place.secret:
        return _SECRET
    if not place.inside:
        return _OUTSIDE
    if place.odd:
        return Verdict(Effect.UNKNOWN, "a name begins with a dash")
    if place.steers:
        return Verdict(Effect.UNKNOWN, "it writes what runs by itself or what later sessions obey")
    return Verdict(Effect.WRITE, "it writes in the workspace", (workspace.shown(place.real),))
