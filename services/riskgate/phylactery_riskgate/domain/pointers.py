"""JSON Pointers (RFC 6901) into arguments."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

MAX_POINTER = 256
UNDECLARED = "?"
"""A placeholder for the name of an argument that the schema does not declare."""


def escape(token: str | int) -> str:
    """Escape one reference token."""
    return str(token).replace("~", "~0").replace("/", "~1")


def pointer(tokens: Iterable[str | int]) -> str:
    """Return the pointer with the given tokens."""
    return "".join(f"/{escape(token)}" for token in tokens)


def declared_names(schema: Any) -> frozenset[str]:
    """Return every argument name that a schema declares, at any depth."""
    if isinstance(schema, list):
        return frozenset().union(*map(declared_names, schema))
    if not isinstance(schema, dict):
        return frozenset()
    properties = schema.get("properties")
    own = frozenset(properties) if isinstance(properties, dict) else frozenset()
    return own.union(*map(declared_names, schema.values()))


def declared_pointer(place: Iterable[str | int], declared: Container[str]) -> str:
    """Return a pointer with undeclared names replaced: a caller may have put a value there."""
    return pointer(token if isinstance(token, int) or token in declared else UNDECLARED for token in place)


def parse(text: str) -> tuple[str, ...]:
    """Parse a pointer.

    Raises:
        ValueError: it is neither empty nor begins with "/", or has a "~" that does not escape anything.
    """
    if not text:
        return ()
    if not text.startswith("/"):
        raise ValueError("a JSON Pointer begins with /")
    tokens = text[1:].split("/")
    if any(piece[:1] not in {"0", "1"} for token in tokens for piece in token.split("~")[1:]):
        raise ValueError("in a JSON Pointer ~ is written ~0")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def value_at(arguments: Any, text: str) -> Any:
    """Return the value at a pointer of the catalog, or None if there is none."""
    for token in parse(text):
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(token)
    return arguments


def with_null(arguments: Any, text: str) -> None:
    """Write null at a pointer whose containers are there."""
    *above, name = parse(text)
    for token in above:
        arguments = arguments[int(token)] if isinstance(arguments, list) else arguments[token]
    arguments[name] = None
