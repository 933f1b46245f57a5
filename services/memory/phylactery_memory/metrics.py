"""Metrics: duration of reads, writes by layer, and how often a read finds something."""

from __future__ import annotations

from opentelemetry.metrics import Meter
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import Ratio, meter


class Metrics:
    """The memory service's instruments under their public names. Create one per process."""

    def __init__(self, instruments: Meter | None = None) -> None:
        """``instruments`` is the meter to create them with; None uses the process's."""
        source = instruments or meter()
        self._read_ms = source.create_histogram(semconv.MEMORY_READ_MS, unit="ms")
        self._write_count = source.create_counter(semconv.MEMORY_WRITE_COUNT)
        self.hits, self.profile_hits = Ratio(), Ratio()
        source.create_observable_gauge(semconv.MEMORY_HIT_RATIO, [self.hits.observe], unit="1")
        source.create_observable_gauge(semconv.MEMORY_PROFILE_HIT_RATIO, [self.profile_hits.observe], unit="1")

    def read(self, pathway: str, milliseconds: float) -> None:
        """Record the duration of a BuildContext read."""
        self._read_ms.record(milliseconds, {semconv.PATHWAY: pathway})

    def wrote(self, layer: str) -> None:
        """Count one write-policy decision; layer is "semantic", "profile" or "none"."""
        self._write_count.add(1, {semconv.MEMORY_LAYER: layer})
