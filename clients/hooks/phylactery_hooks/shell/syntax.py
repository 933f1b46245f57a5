"""Syntax of a shell command: the part of Bash that can be read without running anything.

A command is read twice, by tree-sitter's Bash grammar and by the standard library's lexer, and only a reading on which
both agree counts. Everything whose meaning depends on the shell's state (unset variables, functions, tildes, background
jobs) is refused here, by the type of its node: what is not listed is not read. A variable that the command itself sets
has the value that it sets; a loop is read once for each of its values, and both branches of a condition are read.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from phylactery_hooks.shell.heredocs import Plain, UnclearError
from phylactery_hooks.shell.variables import SAFE, is_name, is_setting

MAX_CHARACTERS: Final = 20_000
MAX_ROUNDS: Final = 200
"""How many times the bodies of loops are read together; a long one counts for several."""
_LONG_BODY: Final = 400
_BASH: Final = Language(tree_sitter_bash.language())
_OPERATORS: Final = frozenset("();<>|&")
_CONNECTORS: Final = frozenset({"&&", "||", ";", "\n"})
_REDIRECTIONS: Final = frozenset({"<", ">", ">>", "&>", "&>>", ">&"})
_SPECIAL: Final = frozenset("$`~{}[]!#\"'\\")
"""Characters that end a plain word: the shell gives each a meaning of its own at some place."""
_BRACES: Final = re.compile(r"([\w./\-]*)\{([\w.\-]+(?:,[\w.\-]*)+)\}([\w./\-]*)")
_TESTS: Final = frozenset("! -e -f -d -r -w -x -s -L -h -n -z = == != -eq -ne -lt -le -gt -ge".split())
_FED: Final = frozenset("diff comm cat wc sort paste join head tail grep".split())
"""Programs that may read from another's output under a name that the shell makes."""
_KEYWORDS: Final = frozenset("for in do done if then elif else fi ( )".split())
_SUBSCRIPT: Final = re.compile(rb"\[|:[A-Za-z&]")
"""What zsh takes for a part of the expansion before it."""
_COMMENT: Final = re.compile(r"#[^$`\"'\\;|&<>(){}*?\[\]~!\n]*")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class UnreadableError(Exception):
    """The command is not of the part of Bash that is read; the text says what is not."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as the program receives it; ``glob`` says that the shell may replace it by names of files."""

    text: str
    glob: bool = False
    plain: bool = True
    """Written without quotes and escapes."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """A redirection to or from a file; those between descriptors have no effect outside and are not kept."""

    writes: bool
    target: Word


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program with its words, and its redirections."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by pipes, and what stands before them: nothing, ``&&``, ``||``, ``;`` or a line's end."""

    commands: tuple[SimpleCommand, ...]
    connector: str


def parse(text: str, matches: Callable[[str], Sequence[str]] = lambda _: ()) -> tuple[Pipeline, ...]:
    """Return the pipelines of a command, in order. Raise UnreadableError.

    ``matches`` returns the names of files that a pattern stands for now.
    """
    _check_characters(text)
    return _parsed(text, matches, {}, [MAX_ROUNDS], inner=False)


def _parsed(
    text: str, matches: Callable[[str], Sequence[str]], values: dict[str, str], rounds: list[int], *, inner: bool
) -> tuple[Pipeline, ...]:
    text = _rewritten(text)
    source = text.encode("utf-8")
    root = Parser(_BASH).parse(source).root_node
    if root.has_error:
        raise UnreadableError("its syntax is not clear")
    reader = _Reader(source, matches, values, rounds, inner=inner)
    pipelines = tuple(reader.whole(root))
    if not pipelines:
        raise UnreadableError("it is empty")
    _check_agreement(source, reader)
    return pipelines


def _rewritten(text: str) -> str:
    """Return a command without here-documents and continued lines. Raise UnreadableError."""
    if "<<" not in text and "\\\n" not in text:
        return text
    try:
        plain = Plain(text)
    except UnclearError as error:
        raise UnreadableError(str(error)) from None
    given, found = nodes(text), nodes(plain.text)
    if not plain.agrees(given) or (plain.bodies and plain.joined):
        raise UnreadableError("its here-documents are not clear")
    if plain.joined and list(_leaves(given)) != list(_leaves(found)):
        raise UnreadableError("its lines are not clear")
    return plain.text


def _leaves(root: Node) -> Iterator[bytes]:
    stack = [root]
    while stack:
        node = stack.pop()
        if not node.children:
            yield node.text or b""
        stack.extend(reversed(node.children))


def nodes(text: str) -> Node:
    """Return the syntax tree of any text, for a look at commands that are not fully read."""
    return Parser(_BASH).parse(text.encode("utf-8", "replace")).root_node


def _check_characters(text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError("it is very long")
    for character in text:
        if character in "\n\t" or " " <= character <= "~":
            continue
        category = unicodedata.category(character)
        if category in _INVISIBLE or category == "Zs":
            raise UnreadableError("it holds control characters or characters that do not show")


def _check_agreement(source: bytes, reader: _Reader) -> None:
    """Compare the words with those of the other lexer, which knows no grammar."""
    blanked = bytearray(source)
    for start, end in reader.comments:
        blanked[start:end] = b" " * (end - start)
    for start, end in reader.substituted:
        blanked[start:end] = b"x" * (end - start)
    lexer = shlex.shlex(blanked.decode("utf-8"), posix=True, punctuation_chars="".join(sorted(_OPERATORS)))
    lexer.whitespace_split, lexer.commenters, lexer.whitespace = True, "", " \t\n"
    try:
        theirs = [one for one in lexer if not _is_operator(one)]
    except ValueError:
        raise UnreadableError("its quotes are not clear") from None
    ours = [one for _, one in sorted(reader.read.items()) if not _is_operator(one)]
    if ours != theirs:
        raise UnreadableError("its words are not clear")


def _is_operator(token: str) -> bool:
    return bool(token) and _OPERATORS.issuperset(token)


class _Reader:
    """Reads nodes of the listed types, and keeps every word it met with its place."""

    def __init__(
        self,
        source: bytes,
        matches: Callable[[str], Sequence[str]],
        values: dict[str, str],
        rounds: list[int],
        *,
        inner: bool,
    ) -> None:
        self._source, self._matches, self._values, self._rounds = source, matches, dict(values), rounds
        self._depth = 1 if inner else 0
        """How many loops, conditions and the like are open, in which nothing is sure to happen."""
        self._inner: list[Pipeline] = []
        self.read: dict[int, str] = {}
        self.comments: list[tuple[int, int]] = []
        self.substituted: list[tuple[int, int]] = []

    def whole(self, root: Node) -> Iterator[Pipeline]:
        """Yield the pipelines of a whole command; one in parentheses is read as if it had none."""
        while len(root.children) == 1 and root.children[0].type == "subshell":
            root = root.children[0]
            self._keyword(root.children[0])
            self._keyword(root.children[-1])
        yield from self.statements(root)

    def statements(self, node: Node) -> Iterator[Pipeline]:
        """Yield the pipelines of a program, a list or a part of it, each with the connector before it."""
        connector = ""
        for child, between in self._children(node):
            if child.type == "comment":
                self._check_comment(child)
                self.comments.append((child.start_byte, child.end_byte))
            elif child.type in _CONNECTORS:
                connector = child.type
            elif child.type in _KEYWORDS:
                self._keyword(child)
            else:
                before, first = connector or between, True
                for found in self._statement(child, sure=before in {"", ";", "\n"}):
                    yield from self._taken()
                    yield Pipeline(found.commands, before) if first else found
                    first = False
                connector = ""

    def _taken(self) -> list[Pipeline]:
        """Return the pipelines that were read inside of words since the last time."""
        found, self._inner = self._inner, []
        return found

    def _keyword(self, node: Node) -> None:
        self.read[node.start_byte] = self._text(node)

    def _check_comment(self, node: Node) -> None:
        """Refuse a comment that would matter in a shell that reads none: an interactive zsh takes it for words."""
        line = self._source[: node.start_byte].rpartition(b"\n")[2]
        if line.strip() or not _COMMENT.fullmatch(self._text(node)):
            raise UnreadableError("it holds a comment that is not plain")

    def _statement(self, node: Node, *, sure: bool) -> list[Pipeline]:
        if node.type == "list":
            return list(self.statements(node))
        if node.type in {"variable_assignment", "variable_assignments", "declaration_command"}:
            self._set(node, sure=sure and not self._depth)
            return []
        if node.type in {"for_statement", "if_statement", "elif_clause", "else_clause", "subshell"}:
            self._depth += 1
            found = list(self._repeated(node) if node.type == "for_statement" else self._branches(node))
            self._depth -= 1
            return found
        inner = node.children[0] if node.type == "redirected_statement" else node
        if inner is node or inner.type not in {"list", "pipeline"}:
            return [Pipeline(tuple(self._pipeline(node)), "")]
        # the grammar hangs the redirections of the last command on all that stands before it
        *before, last = self._statement(inner, sure=sure)
        redirections = tuple(found for one in node.children[1:] for found in self._redirection(one))
        *others, command = last.commands
        command = SimpleCommand(command.words, (*command.redirections, *redirections))
        return [*before, Pipeline((*others, command), last.connector)]

    def _branches(self, node: Node) -> Iterator[Pipeline]:
        """Yield the pipelines of a condition with all its branches, or of a subshell."""
        yield from self.statements(node)

    def _repeated(self, node: Node) -> Iterator[Pipeline]:
        """Yield the pipelines of a loop's body, once for each value."""
        named, body = node.children[1], node.children[-1]
        name = self._text(named)
        parts = [child.type for child in node.children[:3]]
        if parts != ["for", "variable_name", "in"] or body.type != "do_group" or not is_name(name):
            raise UnreadableError("it uses a loop that is not plain")
        for child in node.children[:3]:
            self._keyword(child)
        values: list[tuple[str, bool]] = []
        for child in node.children[3:-1]:
            if child.type not in {";", "\n"}:
                for word in self._words(child, ""):
                    found = self._matches(word.text) if word.glob else ()
                    values.extend((one, False) for one in found or [word.text])
        self._rounds[0] -= len(values) * (1 + (body.end_byte - body.start_byte) // _LONG_BODY)
        if self._rounds[0] < 0:
            raise UnreadableError("a loop has very many rounds")
        for value, _ in values:
            self._values[name] = value
            yield from self.statements(body)
        self._values.pop(name, None)

    def _set(self, node: Node, *, sure: bool) -> None:
        """Take the value of a variable that is only named in this command, or is a harmless setting of programs."""
        exported = node.type == "declaration_command"
        children = [node] if node.type == "variable_assignment" else list(node.children)
        if exported and (children[0].type != "export" or len(children) < 2):  # noqa: PLR2004 - export and what
            raise UnreadableError("it declares a variable in an unusual way")
        if exported:
            self._keyword(children.pop(0))
        for child in children:
            name, value = self._assignment(child)
            if not (is_setting(name, value) or (is_name(name) and not exported)):
                raise UnreadableError("it sets a variable that is not known to be harmless")
            self._values.pop(name, None)
            if sure:
                self._values[name] = value

    def _assignment(self, node: Node) -> tuple[str, str]:
        """Return name and value of an assignment."""
        kinds = [child.type for child in node.children]
        if node.type != "variable_assignment" or kinds[:2] != ["variable_name", "="] or len(kinds) != 3:  # noqa: PLR2004
            raise UnreadableError("it sets a variable in an unusual way")
        name, value = self._text(node.children[0]), node.children[2]
        word, *more = self._words(value, "")
        if more or word.glob:
            raise UnreadableError("it sets a variable in an unusual way")
        raw = self.read.pop(value.start_byte)
        self.read[node.start_byte] = f"{name}={raw}"
        return name, word.text

    def _children(self, node: Node) -> Iterator[tuple[Node, str]]:
        """Yield the children, each with the line's end before it if there is one."""
        end: int | None = None
        for child in node.children:
            between = b"" if end is None else self._source[end : child.start_byte]
            yield child, "\n" if b"\n" in between else ""
            if child.type != "comment":
                end = child.end_byte

    def _pipeline(self, node: Node) -> Iterator[SimpleCommand]:
        if node.type != "pipeline":
            yield self._command(node)
            return
        for child in node.children:
            if child.type == "pipeline":
                yield from self._pipeline(child)
            elif child.type != "|":
                yield self._command(child)

    def _command(self, node: Node) -> SimpleCommand:
        redirections: list[Redirection] = []
        if node.type == "redirected_statement":
            inner, *rest = node.children
            for one in rest:
                redirections.extend(self._redirection(one))
            node = inner
        if node.type == "test_command" and not redirections:
            return self._test(node)
        if node.type != "command":
            raise UnreadableError(f"it uses {_named(node.type)}")
        words: list[Word] = []
        for child in node.children:
            if child.type == "command_name":
                if len(child.children) != 1 or child.children[0].type != "word":
                    raise UnreadableError("the name of a program is not plain")
                words.extend(self._words(child.children[0], ""))
                if words[0].text == "cd":
                    self._change_folder()
            elif child.type == "file_redirect":
                redirections.extend(self._redirection(child))
            elif child.type == "variable_assignment" and not words:
                if not is_setting(*self._assignment(child)):
                    raise UnreadableError("it sets a variable that is not known to be harmless")
            else:
                words.extend(self._words(child, words[0].text if words else ""))
        return SimpleCommand(tuple(words), tuple(redirections))

    def _change_folder(self) -> None:
        """Forget where the shell stands: patterns that are read from here on stand for names in another folder."""
        if self._depth:
            raise UnreadableError("it changes the folder in the middle")

        def unknown(_: str) -> Sequence[str]:
            raise UnreadableError("a loop over a pattern follows a change of the folder")

        self._matches = unknown

    def _test(self, node: Node) -> SimpleCommand:
        """Return a test in brackets as the program ``test``."""
        words: list[Word] = [Word("test")]
        self._keyword(node.children[0])
        self._keyword(node.children[-1])
        stack = list(reversed(node.children[1:-1]))
        while stack:
            child = stack.pop()
            if child.type in {"unary_expression", "binary_expression"}:
                stack.extend(reversed(child.children))
            elif self._text(child) in _TESTS:
                self._keyword(child)
                words.append(Word(self._text(child)))
            else:
                words.extend(self._words(child, "test"))
        return SimpleCommand(tuple(words), ())

    def _redirection(self, node: Node) -> Iterator[Redirection]:
        if node.type != "file_redirect":
            raise UnreadableError(f"it uses {_named(node.type)}")
        parts = list(node.children)
        if parts[0].type == "file_descriptor":
            self._keyword(parts[0])
            if self._text(parts[0]) not in {"0", "1", "2"}:
                raise UnreadableError("it redirects an unusual descriptor")
            parts = parts[1:]
        if len(parts) != 2 or parts[0].type not in _REDIRECTIONS:  # noqa: PLR2004 - an operator and its target
            raise UnreadableError("it redirects in an unusual way")
        operator, (target, *more) = parts[0].type, self._words(parts[1], "")
        if more:
            raise UnreadableError("it redirects in an unusual way")
        if operator == ">&":
            if target.text not in {"1", "2"} or not target.plain:
                raise UnreadableError("it redirects in an unusual way")
            return
        if target.glob:
            raise UnreadableError("it redirects to a pattern")
        yield Redirection(operator != "<", target)

    def _words(self, node: Node, name: str) -> list[Word]:
        """Return what a word stands for: itself, or the words of a list in braces. ``name`` is the program's."""
        text = self._text(node)
        if listed := _BRACES.fullmatch(text):
            self.read[node.start_byte] = text
            found = [f"{listed[1]}{one}{listed[3]}" for one in listed[2].split(",")]
            return [Word(one, plain=False) for one in found if one]
        if node.type == "process_substitution" and text.startswith("<(") and name in _FED:
            self._substitution(node)
            self.read[node.start_byte] = "x" * (node.end_byte - node.start_byte)
            return [Word("-", plain=False)]
        pieces = list(self._pieces(node, name))
        word, raw = _unquoted(node.type, text, pieces)
        self.read[node.start_byte] = raw
        return [word]

    def _pieces(self, node: Node, name: str) -> Iterator[_Piece]:
        """Yield the pieces of a word. Raise UnreadableError if anything stands between them."""
        if node.type == "concatenation":
            if "".join(self._text(child) for child in node.children) != self._text(node):
                raise UnreadableError("its words are not clear")
            for child in node.children:
                yield from self._pieces(child, name)
        elif node.type == "string":
            yield from self._quoted(node, name)
        elif node.type in {"simple_expansion", "expansion"}:
            value = self._value(node, name)
            if not SAFE.fullmatch(value):
                raise UnreadableError("it uses a variable outside quotes that the shell may split")
            yield _Piece("value", self._text(node), value)
        elif node.type == "command_substitution":
            yield self._output(node, name)
        else:
            yield _Piece(node.type, self._text(node), "")

    def _quoted(self, node: Node, name: str) -> Iterator[_Piece]:
        """Yield the pieces of a word in double quotes, of which the grammar leaves out some blanks."""
        at, end = node.start_byte + 1, node.end_byte - 1
        yield _Piece("string", "", "")
        for child in node.children[1:-1]:
            if child.type in {"string_content", "$"}:
                continue
            yield _Piece("string", self._between(at, child.start_byte), "")
            if child.type == "command_substitution":
                yield self._output(child, name)
            elif child.type in {"simple_expansion", "expansion"}:
                yield _Piece("quoted", self._text(child), self._value(child, name))
            else:
                raise UnreadableError(f"it uses {_named(child.type)}")
            at = child.end_byte
        yield _Piece("string", self._between(at, end), "")

    def _between(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8")

    def _value(self, node: Node, name: str) -> str:
        """Return the value of a variable that this command has set."""
        text = self._text(node)
        variable = text[1:].strip("{}")
        if text not in {f"${variable}", f"${{{variable}}}"}:
            raise UnreadableError("it uses an expansion that is not plain")
        if text[1] != "{" and _SUBSCRIPT.match(self._source, node.end_byte):
            raise UnreadableError("it uses an expansion that zsh reads differently")
        if variable in {"?", "#"} and name == "echo":
            return "0"
        if variable not in self._values:
            raise UnreadableError("it uses variables")
        return self._values[variable]

    def _output(self, node: Node, name: str) -> _Piece:
        """Return the output of a command, which only ``echo`` may be given, as it prints whatever it gets."""
        text = self._text(node)
        if name != "echo" or not text.startswith("$("):
            raise UnreadableError("it uses a command's output as a word")
        self._substitution(node)
        return _Piece("quoted", "x" * (node.end_byte - node.start_byte), "x")

    def _substitution(self, node: Node) -> None:
        """Read the command in a substitution, which changes nothing outside of it."""
        inside = self._between(node.start_byte + 2, node.end_byte - 1)
        if not inside.strip() or node.text[-1:] != b")":  # type: ignore[index]
            raise UnreadableError("it uses a substitution that is not plain")
        self.substituted.append((node.start_byte, node.end_byte))
        self._inner.extend(_parsed(inside, self._matches, self._values, self._rounds, inner=True))

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of a word: as it is written, and its value if that is known otherwise."""

    kind: str
    written: str
    value: str


def _unquoted(kind: str, text: str, pieces: Sequence[_Piece]) -> tuple[Word, str]:
    """Return a word, and its text with its variables as they are written."""
    found: list[str] = []
    raw: list[str] = []
    glob = quoted = False
    for piece in pieces:
        value = piece.value
        if piece.kind in {"word", "number"}:
            value, patterned = _bare(piece.written, whole=text)
            glob = glob or patterned
            quoted = quoted or value != piece.written
        elif piece.kind == "raw_string":
            value, quoted = piece.written[1:-1], True
        elif piece.kind == "string":
            value, quoted = _double_quoted(piece.written), True
        elif piece.kind not in {"value", "quoted"}:
            raise UnreadableError(f"it uses {_named(piece.kind)}")
        quoted = quoted or piece.kind == "quoted"
        found.append(value)
        raw.append(piece.written if piece.kind in {"value", "quoted"} else value)
    joined = "".join(found)
    if glob and quoted:
        raise UnreadableError("it mixes patterns and quotes")
    if glob and "**" in joined:
        raise UnreadableError("it uses '**', which shells read differently")
    return Word(joined, glob, kind in {"word", "number"} and joined == text), "".join(raw)


def _bare(text: str, *, whole: str) -> tuple[str, bool]:
    """Return what an unquoted piece of a word stands for, and whether it is a pattern of file names."""
    if text == whole == "!":
        return text, False
    if whole.startswith("="):
        raise UnreadableError("a word begins with '=', which zsh replaces")
    out: list[str] = []
    glob = False
    characters = iter(enumerate(text))
    for index, character in characters:
        if character == "\\":
            following = next(characters, (0, "\n"))[1]
            if following == "\n":
                raise UnreadableError("it continues a line")
            out.append(following)
            continue
        if character == "~" and index and text[index - 1] not in ":=":
            pass  # HEAD~2: only in front, or where a path may begin, is it somebody's home
        elif character == "#" and index:
            pass
        elif character in "{}" and "," not in whole and ".." not in whole:
            pass  # HEAD@{1}: only a list or a range in braces is expanded
        elif character in _SPECIAL:
            raise UnreadableError(f"it uses {character!r} outside quotes")
        glob = glob or character in "*?"
        out.append(character)
    return "".join(out), glob


def _double_quoted(text: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(text):
        character, following = text[index], text[index + 1 : index + 2]
        if character == "\\" and following in {"\\", '"'}:
            out.append(following)
            index += 2
            continue
        if character == "`" or (character == "\\" and following in {"$", "`", "\n"}):
            raise UnreadableError("it uses substitutions in quotes")
        if character == "$" and following not in {"", "|", ")", " "}:
            raise UnreadableError("it uses variables")
        if character == "!" and following not in {"", " ", "="}:
            raise UnreadableError("it uses '!' in quotes")
        out.append(character)
        index += 1
    return "".join(out)


def _named(node_type: str) -> str:
    """Return a node's type in words."""
    return re.sub(r"_+", " ", node_type).strip() or "an unusual construct"
