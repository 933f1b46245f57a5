"""Pins: the definitions of a server's tools that a person reviewed, tied to the server's command or URL.

A tool is identified by everything a model relies on: its name, title, description, schemas and annotations. If any of
these differs, it is a different tool, which nobody has reviewed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from phylactery_mcp_proxy.state.folder import StateError, StateFolder

PINS_FILE: Final = "pins.json"
VERSION: Final = 1
MAX_DEFINITION_BYTES: Final = 64 * 1024
MAX_NAME: Final = 64
"""Models' limit on the length of a tool's name; RiskGate accepts more."""
_KNOWN_BY: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_FIT: Final = re.compile(r"[A-Za-z0-9_-]+")

Definition = Mapping[str, Any]
Definitions = Mapping[str, Definition]


class DefinitionError(ValueError):
    """Error for a tool's definition that cannot be kept; the message says why."""


def tool_name(server: str, tool: str) -> str:
    """Return a tool's name for clients and catalog, as the agent names it: mcp_SERVER_TOOL, or with a hash to fit.

    A server's name contains no underscore, so the tools of two servers cannot share a name.
    """
    plain = f"mcp_{server}_{tool}"
    if _FIT.fullmatch(tool) and len(plain) <= MAX_NAME:
        return plain
    mark = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    fit = "".join(char if _FIT.fullmatch(char) else "_" for char in tool)
    return f"mcp_{server}_{fit[: MAX_NAME - len(server) - 18]}_{mark}"


def known_by(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identifying part of a definition in the protocol's form. Raise DefinitionError."""
    kept = {key: tool[key] for key in _KNOWN_BY if tool.get(key) is not None}
    try:
        size = len(canonical(kept))
    except (ValueError, RecursionError):
        raise DefinitionError("its definition holds what has no canonical form") from None
    if size > MAX_DEFINITION_BYTES:
        raise DefinitionError(f"its definition has {size} bytes, and {MAX_DEFINITION_BYTES} are the most")
    return kept


def canonical(value: Any) -> bytes:
    """Return JSON with sorted keys. Raise ValueError, RecursionError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def definition_hash(definition: Definition) -> str:
    """Return the hash of everything a model relies on."""
    return "sha256:" + hashlib.sha256(canonical(dict(definition))).hexdigest()


@dataclass(frozen=True, slots=True)
class Pins:
    """The reviewed tools by the server's own names, and the identity of that server; empty before the first review."""

    server: str = ""
    tools: Definitions = field(default_factory=dict)


def load_pins(folder: StateFolder) -> Pins:
    """Read the pins; without a file nothing is pinned.

    Raises:
        StateError: The file cannot be read, is not a pin file, or was altered: a hash does not match its definition.
    """
    data, path = folder.read(PINS_FILE), folder.file(PINS_FILE)
    if data is None:
        return Pins()
    try:
        kept = json.loads(data)
        version, server, held = kept["version"], kept["server"], kept["tools"]
        tools = {name: dict(one["definition"]) for name, one in held.items()}
        hashes = {name: one["hash"] for name, one in held.items()}
        if not isinstance(server, str):
            raise TypeError  # noqa: TRY301 - as for every other shape
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise StateError(f"{path}: is not a pin file; move it away and pin again") from None
    if version != VERSION:
        raise StateError(f"{path}: is of version {version!s:.20}, and this proxy reads {VERSION}")
    for name, definition in tools.items():
        if definition.get("name") != name or definition_hash(definition) != hashes[name]:
            raise StateError(f"{path}: the pin of {name[:100]!r} was altered by hand; pin again")
    return Pins(server, tools)


def save_pins(folder: StateFolder, pins: Pins) -> None:
    """Write the pins. Raise StateError."""
    tools = {
        name: {"hash": definition_hash(definition), "definition": dict(definition)}
        for name, definition in sorted(pins.tools.items())
    }
    text = json.dumps({"version": VERSION, "server": pins.server, "tools": tools}, indent=1)
    folder.write(PINS_FILE, text.encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Change:
    """The state of one tool relative to its pin; ``lines`` is the human-readable difference, in ASCII."""

    tool: str
    kind: Literal["new", "changed", "gone"]
    lines: tuple[str, ...]


def changes(pinned: Definitions, listed: Definitions) -> Iterator[Change]:
    """Yield the differences from the pins, by name."""
    for name in sorted({*pinned, *listed}):
        before = _readable(pinned[name]) if name in pinned else []
        after = _readable(listed[name]) if name in listed else []
        if before == after:
            continue
        kind: Literal["new", "changed", "gone"] = "new" if not before else "changed" if after else "gone"
        yield Change(name, kind, tuple(difflib.unified_diff(before, after, "pinned", "now", lineterm="", n=2)))


def _readable(definition: Definition) -> list[str]:
    return json.dumps(definition, ensure_ascii=True, indent=2, sort_keys=True).splitlines()
