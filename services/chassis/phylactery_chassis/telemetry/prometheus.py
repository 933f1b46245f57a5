"""The metrics of a process as the text that Prometheus reads, by OpenTelemetry's own exporter."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from phylactery_chassis.telemetry.instruments import Instrument

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_SERVICE = "service.name"


class _Scraped:
    """A reader of metrics with a registry of its own.

    The library's global registry would add the version of Python; target_info would add that of the SDK.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.reader = PrometheusMetricReader(
            disable_target_info=True,
            scope_info_enabled=False,
            resource_attribute_filter=lambda key: key == _SERVICE,
            registry=self._registry,
        )

    def families(self) -> dict[str, Metric]:
        return {family.name: family for family in self._registry.collect()}


class Page:
    """Every metric of a process: those with values, and name, type and meaning of those without one yet."""

    def __init__(self, known: Mapping[str, Instrument]) -> None:
        """``known`` are the instruments of the process; later ones are seen too."""
        self._known, self._scraped = known, _Scraped()
        self._described: dict[str, Metric] = {}
        self._count = 0
        self._lock = threading.Lock()

    @property
    def reader(self) -> PrometheusMetricReader:
        """The reader to give to the process's MeterProvider."""
        return self._scraped.reader

    def __call__(self) -> bytes:
        """Return the page. It reads the database, so call it in a thread; one call waits for another."""
        with self._lock:  # of two collections at once the exporter gives both to one, with each family twice
            if len(self._known) != self._count:
                instruments = tuple(self._known.values())
                self._described, self._count = _described(instruments), len(instruments)
            return generate_latest(_Families({**self._described, **self._scraped.families()}.values()))


class _Families(Collector):
    """Families that are there already, as the library wants them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        """Return them."""
        return self._families


def _described(instruments: Iterable[Instrument]) -> dict[str, Metric]:
    """Return the families of instruments without samples, under the names and types the exporter gives them.

    An instrument that has recorded nothing is in no export at all, so each is created once more, and records here.
    """
    scraped = _Scraped()
    provider = MeterProvider(metric_readers=[scraped.reader], shutdown_on_exit=False)
    own = provider.get_meter("phylactery")
    for one in instruments:
        _RECORD[one.kind](own, one)
    found = scraped.families()
    provider.shutdown()
    for family in found.values():
        family.samples = []
    return found


_RECORD: Mapping[str, Callable[[Meter, Instrument], object]] = {
    "counter": lambda own, one: own.create_counter(one.name, one.unit, one.description).add(0),
    "histogram": lambda own, one: own.create_histogram(one.name, one.unit, one.description).record(0),
    "gauge": lambda own, one: own.create_observable_gauge(
        one.name, [lambda _: [Observation(0)]], one.unit, one.description
    ),
}
