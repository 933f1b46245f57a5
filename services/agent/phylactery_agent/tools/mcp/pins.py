"""Pins: the definitions of MCP tools that a person reviewed and accepted.

A tool is identified by everything a model or RiskGate relies on: its name, title, description, schemas and annotations.
If any of these differs, it is a different tool, which has not been accepted.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import rfc8785
from phylactery_chassis.util.crypto import sha256
from phylactery_chassis.util.durable_files import write_whole

VERSION: Final = 1
MAX_PINS_BYTES: Final = 32 * 1024 * 1024
MAX_DEFINITION_BYTES: Final = 64 * 1024
_KNOWN_BY: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class PinsError(ValueError):
    """Error for an unusable pin file; the message says which and why."""


class DefinitionError(ValueError):
    """Error for a server's tool definition that cannot be stored; the message says why."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One accepted tool. ``schema`` is its input schema in the form RiskGate's catalog holds."""

    definition: Mapping[str, Any]
    schema: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Return the hash of the tool's definition."""
        return definition_hash(self.definition)


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins by server and by the server's own tool names."""

    servers: Mapping[str, Mapping[str, Pin]] = field(default_factory=dict)

    def of(self, server: str) -> Mapping[str, Pin]:
        """Return the pins of one server."""
        return self.servers.get(server, {})


def known_by(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identifying part of a definition in the protocol's form; absent fields are omitted.

    Raises:
        DefinitionError: The definition is too large, or contains values that JSON cannot represent exactly.
    """
    kept = {key: tool[key] for key in _KNOWN_BY if tool.get(key) is not None}
    try:
        size = len(rfc8785.dumps(kept))
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        raise DefinitionError("its definition holds what has no canonical form") from None
    if size > MAX_DEFINITION_BYTES:
        raise DefinitionError(f"its definition has {size} bytes, and {MAX_DEFINITION_BYTES} are the most")
    return kept


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 over the RFC 8785 form of a definition."""
    return sha256(rfc8785.dumps(dict(definition)))


def load_pins(path: Path) -> Pins:
    """Read the pin file; a missing file pins nothing.

    Raises:
        PinsError: The file cannot be read, is not a pin file, or was altered: a hash does not match its definition.
    """
    try:
        raw = _read(path)
        if raw["version"] == VERSION:
            return Pins({str(server): _pins_of(path, kept["tools"]) for server, kept in raw["servers"].items()})
    except FileNotFoundError:
        return Pins()
    except OSError as error:
        raise PinsError(f"{path} cannot be read ({error.strerror})") from None
    except PinsError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise PinsError(f"{path} is not a pin file; move it away and run `phylactery tools pin` again") from None
    raise PinsError(f"{path} is of version {raw['version']!s:.20}, and this agent reads {VERSION}")


def _read(path: Path) -> Any:
    if path.stat().st_size > MAX_PINS_BYTES:
        raise PinsError(f"{path} is longer than {MAX_PINS_BYTES} bytes")
    return json.loads(path.read_text(encoding="utf-8"))


def _pins_of(path: Path, tools: Mapping[str, Any]) -> dict[str, Pin]:
    return {str(name): _pin(path, str(name), held) for name, held in tools.items()}


def _pin(path: Path, name: str, held: Mapping[str, Any]) -> Pin:
    pin = Pin(dict(held["definition"]), dict(held["schema"]))
    if pin.hash != held["hash"] or pin.definition.get("name") != name:
        raise PinsError(f"{path}: the pin of {name[:100]!r} was altered by hand; run `phylactery tools pin` again")
    return pin


def save_pins(path: Path, pins: Pins) -> None:
    """Write the pin file atomically: a reader finds the old one or the new one. Raise OSError."""
    servers = {
        server: {
            "tools": {
                name: {"hash": pin.hash, "definition": dict(pin.definition), "schema": dict(pin.schema)}
                for name, pin in sorted(tools.items())
            }
        }
        for server, tools in sorted(pins.servers.items())
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"version": VERSION, "servers": servers}, ensure_ascii=False, indent=1)
    write_whole(path, text.encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Change:
    """The state of one tool relative to its pin; ``lines`` is the human-readable difference."""

    tool: str
    kind: Literal["new", "changed", "gone"]
    lines: tuple[str, ...]


def changes(pinned: Mapping[str, Pin], listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    """Yield the differences from the pins, by name; listed holds definitions as returned by known_by."""
    for name in sorted({*pinned, *listed}):
        before = _readable(pinned[name].definition) if name in pinned else []
        after = _readable(listed[name]) if name in listed else []
        if before == after:
            continue
        kind: Literal["new", "changed", "gone"] = "new" if not before else "changed" if after else "gone"
        lines = difflib.unified_diff(before, after, "pinned", "now", lineterm="", n=2)
        yield Change(name, kind, tuple(lines))


def _readable(definition: Mapping[str, Any]) -> list[str]:
    return json.dumps(definition, ensure_ascii=True, indent=2, sort_keys=True).splitlines()
