"""Serialization of drafts as tools.yaml that reads back unchanged and is safe to print on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from phylactery_riskgate.domain.bundle.files import MAX_FILE_BYTES, TOOLS_FILE
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.catalog.drafting.entries import Draft, draft
from phylactery_riskgate.domain.catalog.drafting.schemas import DraftError
from phylactery_riskgate.domain.catalog.drafting.sources import Skipped, Source, SourceError
from phylactery_riskgate.domain.documents import BundleError, read_document
from phylactery_riskgate.domain.model import ApprovalClass
from phylactery_riskgate.domain.policy.cedar_schema import build_schema

_WIDTH: Final = 118
_PLAIN = re.compile(r"[A-Za-z\u00c0-\u024f/$][\w/$ *'.-]*")
"""Words that YAML reads as plain strings, in a list too; all others are quoted."""
_MEANT_OTHERWISE = re.compile(r"(?:true|false|null|yes|no|on|off|y|n)", re.IGNORECASE)
_LATIN, _BASIC = 0xFF, 0xFFFF
HEAD: Final = """\
# Proposed by riskgate catalog draft. Review every line before using it, those with "check:" first; then try
# it: riskgate catalog check, and shadow mode in parallel to the active catalog.
"""


def write(drafts: Iterable[Draft]) -> str:
    """Serialize entries as a complete tools.yaml."""
    entries = ["\n".join(_entry(one)) for one in drafts]
    return HEAD + ("tools:\n" + "\n\n".join(entries) if entries else "tools: []") + "\n"


def _entry(draft: Draft) -> Iterator[str]:
    lead = "  - "
    fields = {name: draft.fields.get(name) for name in dict.fromkeys([*draft.fields, *draft.checks])}
    for name, value in fields.items():
        for check in draft.checks.get(name, ()):
            yield f"    # check: {_visible(check)}"
        if name in draft.fields:
            yield from _field(lead, name, value)
            lead = "    "


def _field(lead: str, name: str, value: Any) -> Iterator[str]:
    """Serialize one key and its value, on one line if it fits."""
    line = f"{lead}{scalar(name)}: {_flow(value)}"
    inner = " " * (len(lead) + 2)
    if len(line) <= _WIDTH or not isinstance(value, list | dict) or not value:
        yield line
    elif isinstance(value, dict):
        yield f"{lead}{scalar(name)}:"
        for key, held in value.items():
            yield from _field(inner, key, held)
    elif all(isinstance(item, list | dict) for item in value):
        yield f"{lead}{scalar(name)}:"
        yield from (f"{inner}- {_flow(item)}" for item in value)
    else:
        yield f"{lead}{scalar(name)}:"
        yield from _wrapped([_flow(item) for item in value], inner)


def _wrapped(items: list[str], inner: str) -> Iterator[str]:
    line = f"{inner}["
    for index, item in enumerate(items):
        piece = item + ("]" if index == len(items) - 1 else ",")
        if len(line) + len(piece) > _WIDTH and line.strip("[ "):
            yield line.rstrip()
            line = f"{inner} "
        line += f"{piece} "
    yield line.rstrip()


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(held)}" for key, held in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """Serialize one value so that a bundle's reader returns it unchanged."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    text = str(value)
    plain = _PLAIN.fullmatch(text) and text.isprintable() and not text.endswith(" ")
    return text if plain and not _MEANT_OTHERWISE.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in {'"', "\\"}:
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    if code <= _LATIN:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _BASIC else f"\\U{code:08x}"


def _visible(text: str) -> str:
    """Return a comment as one line, without anything a terminal or YAML would interpret."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


_LEVELS: Final = ("user",)
_CLASSES: Final = (ApprovalClass("self", 1, "requester", 0),)


def propose(sources: Iterable[Source]) -> tuple[str, tuple[Draft, ...], tuple[Skipped, ...]]:
    """Return a tools.yaml that loads, its entries, and the tools that cannot be drafted.

    Raises:
        SourceError: the result exceeds the size of a bundle file.
    """
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    size = 0
    for source in sources:
        try:
            made, text = _tried(source)
        except DraftError as error:
            skipped.append(Skipped(source.name, str(error)))
            continue
        drafts.append(made)
        size += len(text.encode())
        if size > MAX_FILE_BYTES:
            raise SourceError(f"is more than {TOOLS_FILE} holds ({MAX_FILE_BYTES} bytes): draft fewer tools at once")
    return write(drafts), tuple(drafts), tuple(skipped)


def _tried(source: Source) -> tuple[Draft, str]:
    """Return a draft and its text, after the catalog's own reader has accepted it."""
    made = draft(source)
    text = write([made])
    try:
        document = read_document(TOOLS_FILE, text)
        build_schema(read_catalog(document, _LEVELS), _CLASSES, _LEVELS)
    except BundleError as error:
        raise DraftError(error.message) from error
    except ValueError as error:
        raise DraftError(f"Cedar cannot type its arguments: {error}") from error
    return made, text
