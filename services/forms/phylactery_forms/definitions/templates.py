"""Templates with ``{field}`` placeholders: names alone, no attribute, no index, no format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_PART: Final = re.compile(r"\{\{|\}\}|\{([a-z][a-z0-9_]{0,39})\}|[{}]")


class TemplateError(ValueError):
    """A template with a brace that begins or ends no placeholder."""


def placeholders(text: str) -> tuple[str, ...]:
    """Return the names in a template. Raise TemplateError for a brace that belongs to no placeholder."""
    names = []
    for part in _PART.finditer(text):
        if part.group() in {"{", "}"}:
            raise TemplateError(f"the brace at character {part.start() + 1} of '{text[:60]}' is no placeholder")
        if part.group(1):
            names.append(part.group(1))
    return tuple(names)


def filled(template: Any, values: Mapping[str, str]) -> Any:
    """Return a template with its placeholders filled; a field without a value leaves nothing."""
    if isinstance(template, str):
        return _PART.sub(lambda part: values.get(part[1], "") if part[1] else part[0][0], template)
    if isinstance(template, Mapping):
        return {name: filled(inner, values) for name, inner in template.items()}
    if isinstance(template, (list, tuple)):
        return [filled(inner, values) for inner in template]
    return template
