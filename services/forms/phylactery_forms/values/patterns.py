"""Values of a form author's own pattern, and references to attachments."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from phylactery_forms.values.message import Message, filler
from phylactery_forms.values.model import Context, FileOptions, Found, Options, PatternOptions, Problem, compile_pattern

_MOST: Final = 12


@lru_cache(maxsize=256)
def _compiled(pattern: str, *, ignore_case: bool) -> Any:
    return compile_pattern(pattern, ignore_case=ignore_case)


def find_pattern(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the parts of a message that match: the whole, or words that do."""
    assert isinstance(options, PatternOptions)
    whole = message.text.strip()
    if isinstance(check_pattern(options, whole, context), str):
        start = len(message.text) - len(message.text.lstrip())
        return [message.found(whole, start, start + len(whole), filler("pattern"))]
    found = list[Found]()
    expression = _compiled(options.pattern, ignore_case=options.ignore_case)
    for match in expression.finditer(message.text):
        start, end = match.span()
        alone = not message.text[max(start - 1, 0) : start].isalnum() and not message.text[end : end + 1].isalnum()
        if end > start and alone and isinstance(check_pattern(options, message.text[start:end], context), str):
            found.append(message.found(message.text[start:end], start, end, filler("pattern")))
        if len(found) >= _MOST:
            break
    return found or (Problem("no_match") if re.search(r"\d", whole) and len(whole.split()) <= 3 else [])


def check_pattern(options: Options, value: str, _: Context) -> str | Problem:
    """Return a value that matches as a whole."""
    assert isinstance(options, PatternOptions)
    text = value.strip()
    if len(text) > options.maximum:
        return Problem("too_long", {"maximum": str(options.maximum)})
    matches = bool(text) and _compiled(options.pattern, ignore_case=options.ignore_case).fullmatch(text) is not None
    return text if matches else Problem("no_match")


# ---- attachments -------------------------------------------------------------

_REFERENCE: Final = re.compile(r"attachment:[A-Za-z0-9_.-]{1,200}")


def find_file(_: Options, message: Message, __: Context) -> list[Found] | Problem:
    """Return the references to attachments in a message: attachment:<id>."""
    return [
        message.found(one[0], *one.span(), filler("file") | {"attachment"})
        for one in list(_REFERENCE.finditer(message.text))[:_MOST]
    ]


def check_file(_: Options, value: str, __: Context) -> str | Problem:
    """Return a reference to an attachment; its type and size are checked by ``accepts``, where they are known."""
    text = value.strip()
    return text if _REFERENCE.fullmatch(text) else Problem("not_a_file")


def accepts(options: FileOptions, media_type: str, size: int) -> Problem | None:
    """Return the problem of an attachment's media type or size, or None."""
    if size > options.max_bytes:
        return Problem("file_too_large", {"max_bytes": str(options.max_bytes)})
    given = media_type.split(";", maxsplit=1)[0].strip().lower()
    allowed = any(
        one == given or (one.endswith("/*") and given.startswith(one[:-1])) for one in map(str.lower, options.types)
    )
    if options.types and not allowed:
        return Problem("file_type_not_accepted", {"types": ", ".join(options.types)})
    return None
