"""Metrics of notices. Attributes are the names of sinks, events and codes, which are all fixed lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from opentelemetry.metrics import CallbackOptions, Observation
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import meter, start_at_zero

from phylactery_riskgate.store.notices import Counts

_sent = meter().create_counter(semconv.NOTICES_SENT, unit="{notice}", description="notices that a sink took")
_failures = meter().create_counter(
    semconv.NOTICES_FAILURES, unit="{try}", description="tries that a sink did not take, by the code of the reason"
)
_given_up = meter().create_counter(
    semconv.NOTICES_GIVEN_UP, unit="{notice}", description="notices that are not tried again"
)
_delay = meter().create_histogram(
    semconv.NOTICES_DELAY, unit="ms", description="from what happened to the moment when a sink took its notice"
)

MS: Final = 1_000

for _counter in (_sent, _failures, _given_up):  # also where there is no sink
    start_at_zero(_counter)


def sent(sink: str, event: str, delay_us: int) -> None:
    """Count a notice that a sink took."""
    about = {semconv.NOTICE_SINK: sink, semconv.NOTICE_EVENT: event}
    _sent.add(1, about)
    _delay.record(max(0, delay_us) / MS, about)


def failed(sink: str, code: str) -> None:
    """Count a try that failed."""
    _failures.add(1, {semconv.NOTICE_SINK: sink, semconv.ERROR_TYPE: code})


def given_up(sink: str) -> None:
    """Count a notice that is not tried again."""
    _given_up.add(1, {semconv.NOTICE_SINK: sink})


_looks: list[Callable[[], dict[str, tuple[Counts, bool]]]] = []
"""Each returns, by sink, the counts and whether it is disabled; one for each RiskGate of the process."""


def observe(sinks: Iterable[str], look: Callable[[], dict[str, tuple[Counts, bool]]]) -> Callable[[], None]:
    """Report gauges of these sinks by a function from now on, and their counters as 0; return what ends that."""
    for sink in sinks:
        start_at_zero(_given_up, [{semconv.NOTICE_SINK: sink}])
    _looks.append(look)
    return lambda: _looks.remove(look)


def _waiting(_options: CallbackOptions) -> Iterable[Observation]:
    for look in _looks.copy():
        for sink, (counts, _) in look().items():
            yield Observation(counts.waiting, {semconv.NOTICE_SINK: sink})


def _disabled(_options: CallbackOptions) -> Iterable[Observation]:
    for look in _looks.copy():
        for sink, (_, disabled) in look().items():
            yield Observation(int(disabled), {semconv.NOTICE_SINK: sink})


meter().create_observable_gauge(
    semconv.NOTICES_WAITING, [_waiting], unit="{notice}", description="notices that a sink has not taken yet"
)
meter().create_observable_gauge(
    semconv.NOTICES_DISABLED, [_disabled], unit="{sink}", description="1 for a sink that said that it is gone"
)
