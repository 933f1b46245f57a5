"""The instruments of a process: what each is, and counters that are exported as 0 before anything was counted.

A counter that first appears with its first error has no earlier value to be compared with, so no rate and no alert sees
that error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Counter, Histogram, Observation

from phylactery_chassis.telemetry import semconv

Kind: TypeAlias = Literal["counter", "histogram", "gauge"]
Labels: TypeAlias = Mapping[str, str | bool]
Observe: TypeAlias = Callable[[CallbackOptions], Iterable[Observation]]

RPC_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
"""Histogram boundaries of calls, by OpenTelemetry's RPC conventions.

The SDK's own are made for milliseconds: every call under 5 seconds would be in one bucket, and no percentile right."""
_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Instrument:
    """One instrument as it was created."""

    kind: Kind
    name: str
    unit: str
    description: str


class Instruments:
    """Creates instruments, as a Meter does, and knows those it created by name."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._meter = meter
        self.known: dict[str, Instrument] = {}

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Counter:
        """Create a counter; ``start_at_zero`` names the attributes it is exported with from the start."""
        self._note("counter", name, unit, description)
        return self._meter.create_counter(name, unit, description)

    def create_histogram(
        self,
        name: str,
        unit: str = "",
        description: str = "",
        *,
        explicit_bucket_boundaries_advisory: Sequence[float] | None = None,
    ) -> Histogram:
        """Create a histogram."""
        self._note("histogram", name, unit, description)
        return self._meter.create_histogram(
            name, unit, description, explicit_bucket_boundaries_advisory=explicit_bucket_boundaries_advisory
        )

    def create_observable_gauge(
        self, name: str, callbacks: Sequence[Observe], unit: str = "", description: str = ""
    ) -> None:
        """Create a gauge that is read at each export."""
        self._note("gauge", name, unit, description)
        self._meter.create_observable_gauge(name, callbacks, unit, description)

    def _note(self, kind: Kind, name: str, unit: str, description: str) -> None:
        self.known[name] = Instrument(kind, name, unit, description)


_process = Instruments(metrics.get_meter("phylactery"))
_zeros: dict[tuple[Counter, frozenset[tuple[str, str | bool]]], None] = {}
"""What is exported as 0 once there is an exporter. Instruments are created with their modules, mostly before that."""


def meter() -> Instruments:
    """Return what creates every instrument of the process."""
    return _process


def start_at_zero(counter: Counter, sets: Iterable[Labels] = ({},)) -> Counter:
    """Export a counter as 0 with each of these sets of attributes, from the start; return it."""
    for labels in sets:
        _zeros[counter, frozenset(labels.items())] = None
        counter.add(0, dict(labels))
    return counter


def add_zeros() -> None:
    """Count 0 wherever ``start_at_zero`` was called, for an exporter that is new."""
    for counter, labels in tuple(_zeros):
        counter.add(0, dict(labels))


def each(values: Mapping[str, Iterable[str | bool]]) -> list[Labels]:
    """Return every combination of attribute values."""
    return [dict(zip(values, one, strict=True)) for one in product(*values.values())]


class Words:
    """The first so many values of an attribute that somebody else chooses; later ones, and long ones, are _OTHER."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: set[str] = set()

    def bounded(self, word: str) -> str:
        """Return the word, or _OTHER in its place."""
        if word not in self._seen:
            if len(self._seen) >= self._most or len(word) > _LONGEST_WORD:
                return semconv.OTHER
            self._seen.add(word)
        return word
