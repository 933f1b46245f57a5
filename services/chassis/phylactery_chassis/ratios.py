"""How often something is so, as a gauge of the process."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Observation


class Ratio:
    """Counts how many of the tries were hits, since the process began."""

    def __init__(self) -> None:
        self.tries = 0
        self.hits = 0

    def count(self, *, hit: bool) -> None:
        """Counts one try."""
        self.tries += 1
        self.hits += hit

    def observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        """Answers hits over tries; nothing before the first try."""
        return [Observation(self.hits / self.tries)] if self.tries else []
