"""Metrics: duration of reads, writes by layer, and how often a read finds something."""

from __future__ import annotations

from typing import Final

from opentelemetry.metrics import Meter
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import each, meter, start_at_zero
from phylactery_chassis.telemetry.telemetry import Ratio

_LAYERS: Final = ("semantic", "profile", "none")


class Metrics:
    """The memory service's instruments under their public names. Create one per process."""

    def __init__(self, instruments: Meter | None = None) -> None:
        """``instruments`` is the meter to create them with; None uses the process's."""
        source = instruments or meter()
        self._read_ms = source.create_histogram(
            semconv.MEMORY_READ_MS, unit="ms", description="reads of memory for a turn"
        )
        self._write_count = source.create_counter(
            semconv.MEMORY_WRITE_COUNT, unit="{decision}", description="decisions of the write policy"
        )
        start_at_zero(self._write_count, each({semconv.MEMORY_LAYER: _LAYERS}))
        self.hits, self.profile_hits = Ratio(), Ratio()
        source.create_observable_gauge(
            semconv.MEMORY_HIT_RATIO,
            [self.hits.observe],
            unit="1",
            description="reads that found a relevant memory, since the start",
        )
        source.create_observable_gauge(
            semconv.MEMORY_PROFILE_HIT_RATIO,
            [self.profile_hits.observe],
            unit="1",
            description="reads that found something in the profile, since the start",
        )

    def read(self, pathway: str, milliseconds: float) -> None:
        """Record the duration of a BuildContext read."""
        self._read_ms.record(milliseconds, {semconv.PATHWAY: pathway})

    def wrote(self, layer: str) -> None:
        """Count one decision of the write policy; layer is "semantic", "profile" or "none"."""
        self._write_count.add(1, {semconv.MEMORY_LAYER: layer})
