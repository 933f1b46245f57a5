"""What an MCP server said of its tools when somebody looked at it and agreed: the pins.

A tool is known by everything a model or RiskGate would go by: its name, title, description, schemas and annotations.
Where any of it is another, it is another tool, which nobody has agreed to.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import rfc8785

VERSION: Final = 1
MAX_PINS_BYTES: Final = 32 * 1024 * 1024
MAX_DEFINITION_BYTES: Final = 64 * 1024
_KNOWN_BY: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


class PinsError(ValueError):
    """The pin file cannot be used; the message says which and why."""


class DefinitionError(ValueError):
    """A server's definition of a tool cannot be kept; the message says why."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One tool as it was agreed to. ``schema`` is its input schema in the form RiskGate's catalog holds."""

    definition: Mapping[str, Any]
    schema: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """What the tool is known by."""
        return definition_hash(self.definition)


@dataclass(frozen=True, slots=True)
class Pins:
    """The pins by server and by the server's own names of its tools."""

    servers: Mapping[str, Mapping[str, Pin]] = field(default_factory=dict)

    def of(self, server: str) -> Mapping[str, Pin]:
        """Return the pins of one server."""
        return self.servers.get(server, {})


def known_by(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a tool is known by, of a definition as the protocol carries it; what is not said is left out.

    Raises:
        DefinitionError: it is too large, or hold what JSON does not carry exactly.
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
    return "sha256:" + hashlib.sha256(rfc8785.dumps(dict(definition))).hexdigest()


def load_pins(path: Path) -> Pins:
    """Read the pin file; one that is not there pins nothing.

    Raises:
        PinsError: it cannot be read, is none, or was altered: a hash does not fit its definition.
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
        raise PinsError(f"{path} is no pin file; move it away and run `phylactery tools pin` again") from None
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
    """Write the pin file in one step: whoever reads it finds the old one or the new one. Raise OSError."""
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
    descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, "servers": servers}, file, ensure_ascii=False, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Change:
    """How one tool stands to its pin; ``lines`` is the difference for a person to read."""

    tool: str
    kind: Literal["new", "changed", "gone"]
    lines: tuple[str, ...]


def changes(pinned: Mapping[str, Pin], listed: Mapping[str, Mapping[str, Any]]) -> Iterator[Change]:
    """Yield what is not as it was pinned, by name; listed holds definitions as known_by answers them."""
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
