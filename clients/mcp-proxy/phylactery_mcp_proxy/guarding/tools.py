"""The tools of the guarded server as clients may use them: pinned, unchanged, and under their names in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from phylactery_mcp_proxy.settings import ServerTarget
from phylactery_mcp_proxy.state.pins import Definitions, Pins, definition_hash, tool_name


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool that may be called: the server's own name of it, and its reviewed definition."""

    name: str
    own_name: str
    definition: Mapping[str, Any]

    @property
    def reads_only(self) -> bool:
        """Return True if the reviewed definition says that the tool changes nothing."""
        said = self.definition.get("annotations")
        return isinstance(said, Mapping) and said.get("readOnlyHint") is True

    def offered(self) -> types.Tool:
        """Return the tool as clients see it."""
        return types.Tool.model_validate({**self.definition, "name": self.name}, by_name=False)


class PinnedTools:
    """The pins, compared with what the server lists."""

    def __init__(self, target: ServerTarget, pins: Pins) -> None:
        self._target = target
        self._foreign = bool(pins.tools) and pins.server != target.identity
        self._pinned = {} if self._foreign else pins.tools
        self._listed: Definitions | None = None
        self._names = self._named(self._pinned)

    def compare(self, listed: Definitions) -> None:
        """Take over what the server lists."""
        self._listed = listed
        self._names = self._named(self._pinned) | self._named(listed)

    def usable(self) -> list[PinnedTool]:
        """Return the tools that may be called, by name."""
        found = (self.find(name) for name in sorted(self._names))
        return [one for one in found if isinstance(one, PinnedTool)]

    def blocked(self) -> dict[str, str]:
        """Return why each other tool may not be called, by name."""
        found = {name: self.find(name) for name in sorted(self._names)}
        return {name: one for name, one in found.items() if isinstance(one, str)}

    def find(self, name: str) -> PinnedTool | str:
        """Return the tool of this name, or a sentence that says why it may not be called."""
        own = self._names.get(name)
        if own is None:
            return f"{name[:128]} is not a tool of {self._target.name}."
        if own not in self._pinned:
            why = (
                "its pins are those of another command or URL" if self._foreign else "nobody has reviewed and pinned it"
            )
            return f"{name} is blocked: {why}. {self._remedy()}"
        definition = self._pinned[own]
        if self._listed is not None and own not in self._listed:
            return f"{name} is blocked: {self._target.name} no longer offers it. {self._remedy()}"
        if self._listed is not None and definition_hash(self._listed[own]) != definition_hash(definition):
            return f"{name} is blocked: its definition differs from the one that was reviewed. {self._remedy()}"
        return PinnedTool(name, own, definition)

    def _named(self, definitions: Definitions) -> dict[str, str]:
        return {tool_name(self._target.name, own): own for own in definitions}

    def _remedy(self) -> str:
        return f"The operator reviews it with `riskgate mcp-proxy pin --name {self._target.name} …`."
