"""What memory tells about itself: how long reads take, what is written, and how often a read finds something."""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.metrics import CallbackOptions, Meter, Observation
from phylactery_chassis import semconv
from phylactery_chassis.telemetry import meter


class Ratio:
    """Counts how many of the tries found something, since the process began."""

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


class Metrics:
    """The instruments, under the names the product gives them. Make one for a process."""

    def __init__(self, instruments: Meter | None = None) -> None:
        """Takes the meter to make them at; None is the process's."""
        source = instruments or meter()
        self._read_ms = source.create_histogram(semconv.MEMORY_READ_MS, unit="ms")
        self._write_count = source.create_counter(semconv.MEMORY_WRITE_COUNT)
        self.hits, self.profile_hits = Ratio(), Ratio()
        source.create_observable_gauge(semconv.MEMORY_HIT_RATIO, [self.hits.observe], unit="1")
        source.create_observable_gauge(semconv.MEMORY_PROFILE_HIT_RATIO, [self.profile_hits.observe], unit="1")

    def read(self, pathway: str, milliseconds: float) -> None:
        """Records how long one BuildContext read took."""
        self._read_ms.record(milliseconds, {semconv.PATHWAY: pathway})

    def wrote(self, layer: str) -> None:
        """Counts one decision of the write policy; layer is "semantic", "profile" or "none"."""
        self._write_count.add(1, {semconv.MEMORY_LAYER: layer})
