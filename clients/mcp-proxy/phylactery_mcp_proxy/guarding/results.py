"""What a tool's result shows: bounded, and the same for the client and for RiskGate.

RiskGate must see everything that a model sees. So a result is first reduced to text and JSON; exactly that is observed,
and exactly that is passed on. Pictures and sounds, which RiskGate cannot read, are named and not shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

import mcp_types as types

MAX_ERROR_CHARS: Final = 2_000
_MAX_NAME_CHARS: Final = 300
_MAX_DEPTH: Final = 32
_MAX_EXACT: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Shown:
    """A result as the client gets it, and its content as RiskGate is shown it: ``json`` or else ``text``."""

    result: types.CallToolResult = field(repr=False)
    text: str = field(default="", repr=False)
    json: str | None = field(default=None, repr=False)

    @property
    def failed(self) -> bool:
        """Return True if the tool reports that it failed."""
        return self.result.is_error


def shown(result: types.CallToolResult, limit: int) -> Shown:
    """Return what a result shows, of at most ``limit`` characters."""
    text = "\n".join(_block(block) for block in result.content)
    if result.is_error:
        text = bounded(text, MAX_ERROR_CHARS) or "the tool failed and does not say why"
        if result.structured_content is not None:
            text = bounded(f"{text}\n{_dumped(result.structured_content) or ''}".strip(), limit)
        return Shown(error_result(text), text)
    if result.structured_content is None:
        text = bounded(text, limit)
        return Shown(_text_result(text), text)
    dumped = _dumped(result.structured_content)
    if dumped is None or len(dumped) + len(text) > limit:
        text = f"The result is not shown: it has more than {limit} characters, or is not plain JSON. The call did run."
        return Shown(error_result(text), text)
    if not text or _same(text, result.structured_content):
        plain = _text_result(dumped, result.structured_content)
        return Shown(plain, dumped, dumped if _exact(result.structured_content) else None)
    # A text of its own beside the JSON: RiskGate takes one of both, so all of it counts as text.
    together = types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=result.structured_content
    )
    return Shown(together, f"{text}\n{dumped}")


def error_result(text: str) -> types.CallToolResult:
    """Return a tool's error, which a model reads."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def bounded(text: str, limit: int) -> str:
    """Return at most limit characters, with a note if the text was cut."""
    if len(text) <= limit:
        return text
    end = f"\n[cut here: {limit} of {len(text)} characters]"
    return text[: limit - len(end)] + end


def visible(text: str, limit: int = _MAX_NAME_CHARS) -> str:
    """Return a text on one line without invisible characters: direction marks, joiners, tags, controls."""
    plain = "".join(char if char.isprintable() else " " for char in text[: 4 * limit])
    return " ".join(plain.split())[:limit].strip()


def _text_result(text: str, structured: Any = None) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=text)]
    if structured is None:
        return types.CallToolResult(content=content)
    return types.CallToolResult(content=content, structured_content=structured)


def _block(block: Any) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return _binary(block.mime_type, len(block.data))
        case types.ResourceLink():
            return f"[a link, not followed: {visible(block.name)} {visible(str(block.uri))}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return _binary(resource.mime_type, len(resource.blob))
        case _:
            return "[content of an unknown kind, not shown]"


def _binary(kind: str | None, base64_chars: int) -> str:
    return f"[{visible(kind or 'binary')}, {base64_chars * 3 // 4} bytes, not shown]"


def _dumped(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError, TypeError):
        return None


def _same(text: str, value: Any) -> bool:
    """Return True if a text is the JSON of a value and nothing else, as servers repeat it for older clients."""
    try:
        return bool(json.loads(text, object_pairs_hook=_pairs) == value)
    except (ValueError, RecursionError):
        return False


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raise ValueError if it names a key twice: readers would see different things."""
    read = dict(pairs)
    if len(read) < len(pairs):
        raise ValueError("a key is named twice")
    return read


def _exact(value: Any, depth: int = 0) -> bool:
    """Return True if RiskGate reads a value as JSON: no number beyond what a double holds, and not too deep."""
    if depth > _MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(_exact(one, depth + 1) for one in value.values())
    if isinstance(value, list):
        return all(_exact(one, depth + 1) for one in value)
    return not isinstance(value, int) or abs(value) <= _MAX_EXACT
