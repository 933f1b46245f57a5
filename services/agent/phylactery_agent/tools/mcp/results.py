"""Conversion of MCP tool results to text: bounded, with non-text content named instead of shown.

The content is entirely the server's: data for a model to read, never an instruction.
"""

from __future__ import annotations

import json
from typing import Any, Final

import mcp_types as types

from phylactery_agent.tools.contract import TOOL_ERROR, ToolFailedError
from phylactery_agent.tools.mcp.specs import visible

MAX_ERROR_CHARS: Final = 2_000
_MAX_NAME_CHARS: Final = 300
_REASONS: Final = (
    *("message", "error_message", "error_description", "detail", "details", "reason", "description", "title"),
    *("error", "errors", "fault"),
)
"""Names under which JSON says why something failed, the most telling first."""
_MAX_REASONS: Final = 8
_MAX_DEPTH: Final = 4


def text_of(result: types.CallToolResult, *, structured: bool, limit: int) -> str:
    """Return the text of a result; structured means that the tool promises JSON, which is then returned.

    JSON that was not promised is returned where there is nothing else.

    Raises:
        ToolFailedError: The tool reports that it failed.
    """
    said = _said(result)
    if result.is_error:
        raise ToolFailedError(TOOL_ERROR, error_of(result), not_done=False)  # it does not say how far it got
    if result.structured_content is not None and (structured or not said.strip()):
        return _bounded(_json(result.structured_content), limit)
    return _bounded(said, limit)


def error_of(result: types.CallToolResult) -> str:
    """Return a tool's own error message: its text, or else a reason in its JSON, or else that JSON."""
    said = _said(result).strip()
    if not said and result.structured_content:
        said = _reason(result.structured_content) or _json(result.structured_content)
    return _bounded(said, MAX_ERROR_CHARS) or "the tool failed and does not say why"


def _reason(value: Any, depth: int = 0) -> str:
    """Return the first text under a name of a reason, at most a few levels down, or an empty string."""
    if isinstance(value, str):
        return value.strip() if depth else ""
    if isinstance(value, list):
        return next((found for item in value[:_MAX_REASONS] if (found := _reason(item, depth))), "")
    if not isinstance(value, dict) or depth > _MAX_DEPTH:
        return ""
    names = {name.lower(): name for name in value if isinstance(name, str)}
    reasons = (_reason(value[names[name]], depth + 1) for name in _REASONS if name in names)
    return next((one for one in reasons if one), "")


def _said(result: types.CallToolResult) -> str:
    return "\n".join(_block(block) for block in result.content)


def _block(block: Any) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent() | types.AudioContent():
            return _binary(block.mime_type, len(block.data))
        case types.ResourceLink():
            return f"[a link, not followed: {_name(str(block.uri))}]"
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return resource.text
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return _binary(resource.mime_type, len(resource.blob))
        case _:
            return "[content of an unknown kind, not shown]"


def _binary(kind: str | None, base64_chars: int) -> str:
    return f"[{_name(kind or 'binary')}, {base64_chars * 3 // 4} bytes, not shown]"


def _name(text: str) -> str:
    return visible(text, _MAX_NAME_CHARS)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return "[a structure that cannot be written as JSON, not shown]"


def _bounded(text: str, limit: int) -> str:
    """Return at most limit characters, with a note if the text was cut."""
    if len(text) <= limit:
        return text
    end = f"\n[cut here: {limit} of {len(text)} characters]"
    return text[: limit - len(end)] + end
