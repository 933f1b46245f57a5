"""Here-documents and continued lines: written as the plain command that they stand for, where that can be told.

A document whose delimiter is quoted, or whose text holds nothing that a shell replaces, is text and nothing else. It is
taken out of the command; as the output of ``cat`` in a quoted substitution it becomes a quoted word. tree-sitter has to
find the same documents, and the same words after the lines are joined.
"""

from __future__ import annotations

import re
from typing import Final

from tree_sitter import Node

_CAT: Final = re.compile(r"\"\$\(cat <<'([A-Za-z_]\w*)'\n")
_START: Final = re.compile(r"<<[ ]?(?:'([A-Za-z_]\w*)'|\"([A-Za-z_]\w*)\"|([A-Za-z_]\w*))(?=[\s;|&>)]|$)")
_EXPANDED: Final = frozenset("$`\\")
_NAMED: Final = re.compile(r"\$\{\w+\}")


class UnclearError(Exception):
    """The text cannot be rewritten; it says why."""


class Plain:
    """A command without here-documents and continued lines."""

    def __init__(self, text: str) -> None:
        """Read the text. Raise UnclearError."""
        self._given, self._at = text, 0
        self._out: list[str] = []
        self._pending: list[tuple[str, bool]] = []
        self.bodies: list[str] = []
        self.joined = False
        self._read()
        self.text = "".join(self._out)

    def agrees(self, root: Node) -> bool:
        """Return True if the tree of the text as it was given has the same here-documents."""
        found: list[str] = []
        stack = [root]
        while stack:
            node = stack.pop()
            if node.type == "heredoc_redirect":
                bodies = [child for child in node.children if child.type == "heredoc_body"]
                found.append("".join((child.text or b"").decode() for child in bodies))
            stack.extend(reversed(node.children))
        return sorted(one.strip("\n") for one in found) == sorted(one.strip("\n") for one in self.bodies)

    def _read(self) -> None:
        opened: list[str] = []  # the quote or parenthesis that is open, innermost last
        text = self._given
        while self._at < len(text):
            character = text[self._at]
            inside = opened[-1] if opened else ""
            if inside == "'":
                self._keep(1)
                if character == "'":
                    opened.pop()
            elif character == "`":
                raise UnclearError("it uses backquotes")
            elif character == "\\":
                self._backslash(inside)
            elif inside == '"':
                self._double(opened)
            elif not inside and (found := _CAT.match(text, self._at)):
                self._substituted(found)
            else:
                self._plain(character, opened)
        if self._pending or opened:
            raise UnclearError("its quotes or here-documents are not clear")

    def _plain(self, character: str, opened: list[str]) -> None:
        """Read what is in no quotes."""
        if character in "'\"":
            opened.append(character)
            self._keep(1)
        elif character == "#" and self._starts_word():
            end = self._given.find("\n", self._at)
            self._keep((end if end >= 0 else len(self._given)) - self._at)
        elif self._given.startswith("<<", self._at):
            self._opened_document()
        elif character == "\n" and self._pending:
            self._keep(1)
            self._documents()
        else:
            self._unquoted(character, opened)

    def _keep(self, count: int) -> None:
        self._out.append(self._given[self._at : self._at + count])
        self._at += count

    def _starts_word(self) -> bool:
        return not self._at or self._given[self._at - 1] in " \t\n;|&()"

    def _backslash(self, inside: str) -> None:
        following = self._given[self._at + 1 : self._at + 2]
        if following == "\n" and inside != '"' and self._at and self._given[self._at - 1] in " \t":
            if self._pending:
                raise UnclearError("a here-document begins on a line that goes on")
            self._out.append("  ")
            self._at += 2
            self.joined = True
        else:
            self._keep(2)

    def _double(self, opened: list[str]) -> None:
        if self._given[self._at] == '"':
            opened.pop()
        elif self._given.startswith("$(", self._at):
            opened.append("(")
            self._keep(1)
        elif self._given[self._at] == "$":
            self._expansion("")
        elif self._given[self._at] == "\n" and self._pending:
            raise UnclearError("a here-document begins on a line that ends in quotes")
        self._keep(1)

    def _unquoted(self, character: str, opened: list[str]) -> None:
        if character == "(":
            opened.append("(")
        elif character == ")":
            if not opened:
                raise UnclearError("its parentheses are not clear")
            opened.pop()
        elif character == "$" and not self._given.startswith("$(", self._at):
            self._expansion("'\"")
        self._keep(1)

    def _expansion(self, ends: str) -> None:
        """Refuse an expansion that may hold quotes of its own, or a quote that begins with a dollar sign."""
        following = self._given[self._at + 1 : self._at + 2]
        if (following == "{" and not _NAMED.match(self._given, self._at)) or (following and following in ends):
            raise UnclearError("it uses expansions that are not plain")

    def _substituted(self, found: re.Match[str]) -> None:
        """Write the whole quoted substitution of a document as a quoted word."""
        body, end = self._body(found[1], found.end())
        if not self._given.startswith(')"', end):
            raise UnclearError("it uses substitutions that are not plain")
        self.bodies.append(body)
        quoted = body.rstrip("\n").replace("'", "'\\''")
        self._out.append(f"'{quoted}'")
        self._at = end + 2

    def _opened_document(self) -> None:
        found = _START.match(self._given, self._at)
        if found is None:
            raise UnclearError("it uses a here-document that is not plain")
        self._pending.append((found[1] or found[2] or found[3], found[3] is None))
        self._out.append(" " * (found.end() - self._at))
        self._at = found.end()

    def _documents(self) -> None:
        for delimiter, quoted in self._pending:
            body, self._at = self._body(delimiter, self._at)
            if not quoted and _EXPANDED.intersection(body):
                raise UnclearError("its here-document holds what the shell replaces")
            self.bodies.append(body)
        self._pending.clear()

    def _body(self, delimiter: str, start: int) -> tuple[str, int]:
        """Return the lines up to the delimiter's, and where the line after it begins."""
        end = re.compile(rf"^{delimiter}(?:\n|\Z)", re.MULTILINE).search(self._given, start)
        if end is None:
            raise UnclearError("its here-document has no end")
        return self._given[start : end.start()], end.end()
