"""The page that Prometheus reads: zeros from the start, every instrument described, words of others bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from phylactery_chassis.telemetry import instruments
from phylactery_chassis.telemetry.instruments import Instruments, Words, each
from phylactery_chassis.telemetry.prometheus import Page
from prometheus_client.parser import text_string_to_metric_families


class Process:
    """What a process has: its instruments, and a page of them."""

    def __init__(self) -> None:
        resource = Resource.create({"service.name": "phylactery-test", "user.name": "marifloria"})
        known: dict[str, instruments.Instrument] = {}
        self.page = Page(known)
        provider = MeterProvider([self.page.reader], resource, shutdown_on_exit=False)
        self.meter = Instruments(provider.get_meter("phylactery"))
        self.meter.known = known
        self.end: Callable[[], None] = provider.shutdown

    def read(self) -> dict[str, tuple[str, str, dict[tuple[tuple[str, str], ...], float]]]:
        """Name, type, help, and the samples by their labels, but for the service's name."""
        found = {}
        for family in text_string_to_metric_families(self.page().decode()):
            assert family.name not in found, "a family is there twice, and Prometheus refuses the page"
            for one in family.samples:
                assert one.labels.pop("service_name") == "phylactery-test"
            samples = {tuple(sorted(one.labels.items())): one.value for one in family.samples}
            found[family.name] = (family.type, family.documentation, samples)
        return found


@pytest.fixture
def process():
    one = Process()
    yield one
    one.end()


def test_what_was_never_counted_is_there_as_zero_with_its_known_words(process: Process):
    counter = process.meter.create_counter("sla.slo_violation_count", "{turn}", "turns that were late")
    instruments.start_at_zero(counter, each({"phylactery.pathway": ("a", "b"), "phylactery.again": (False,)}))
    instruments.start_at_zero(process.meter.create_counter("riskgate.altered", description="records"))
    read = process.read()
    assert read["riskgate_altered"] == ("counter", "records", {(): 0})
    kind, told, samples = read["sla_slo_violation_count"]
    assert (kind, told) == ("counter", "turns that were late")
    assert samples == {(("phylactery_again", "false"), ("phylactery_pathway", one)): 0 for one in "ab"}
    counter.add(2, {"phylactery.pathway": "a", "phylactery.again": False})
    assert sorted(process.read()["sla_slo_violation_count"][2].values()) == [0, 2]


def test_zeros_reach_an_exporter_that_is_configured_after_them(monkeypatch: pytest.MonkeyPatch):
    seen = []

    class Proxy:
        def add(self, amount, labels):
            seen.append((amount, labels))

    monkeypatch.setattr(instruments, "_zeros", {})
    counter = Proxy()
    instruments.start_at_zero(counter, [{"a": "1"}])
    instruments.start_at_zero(counter, [{"a": "1"}])
    seen.clear()  # there is no exporter yet: these were lost
    instruments.add_zeros()
    assert seen == [(0, {"a": "1"})]


def test_what_has_no_value_yet_has_its_name_type_and_meaning_and_no_sample(process: Process):
    process.meter.create_histogram("sla.end_to_end_ms", "ms", "a turn")
    seconds = process.meter.create_histogram("rpc.server.call.duration", "s", "calls")
    process.meter.create_observable_gauge("memory.hit_ratio", [lambda _: ()], "1", "hits")
    expected = {
        "sla_end_to_end_ms_milliseconds": ("histogram", "a turn", {}),
        "rpc_server_call_duration_seconds": ("histogram", "calls", {}),
        "memory_hit_ratio": ("gauge", "hits", {}),
    }
    assert process.read() == expected
    seconds.record(0.2)
    process.meter.create_observable_gauge("late", [lambda _: [Observation(7)]], "{thing}", "made later")
    read = process.read()
    assert read["rpc_server_call_duration_seconds"][2]
    assert read["late"] == ("gauge", "made later", {(): 7})


def test_nothing_of_the_machine_or_its_versions_is_on_the_page(process: Process):
    process.meter.create_counter("one").add(1)
    page = process.page().decode().lower()
    for word in ("python", "version", "sdk", "marifloria", "target_info", "otel_scope", "process_"):
        assert word not in page


def test_two_who_read_at_once_each_get_a_whole_page(process: Process):
    process.meter.create_observable_gauge("slow", [lambda _: [Observation(1)]])
    counter = process.meter.create_counter("busy")
    counter.add(0)
    pages: list[bytes] = []
    readers = [threading.Thread(target=lambda: pages.append(process.page())) for _ in range(8)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    assert [page.count(b"# TYPE busy_total") for page in pages] == [1] * 8


def test_of_words_that_others_choose_only_the_first_and_only_short_ones_count():
    words = Words(3)
    given = ["131000", "x" * 65, "429", "131000", "unknown", "one more", "429"]
    assert [words.bounded(one) for one in given] == ["131000", "_OTHER", "429", "131000", "unknown", "_OTHER", "429"]
