"""OpenTelemetry traces and metrics, exported to a collector or to Prometheus if configured; spans always to a file.

The file needs no collector and is written span by span, so it survives a SIGKILL.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from phylactery_chassis.telemetry import instruments, semconv
from phylactery_chassis.telemetry.instruments import meter
from phylactery_chassis.telemetry.spans import LightProcessor, LightProvider, LightSpan, light_span

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader

    from phylactery_chassis.telemetry.prometheus import Page

_MAX_FILE_BYTES = 64 * 1024 * 1024
_propagator = TraceContextTextMapPropagator()
_TRACE_PARENT = "traceparent"
_encode = json.JSONEncoder(ensure_ascii=False).encode
_quoted = json.encoder.encode_basestring
_tracer = trace.get_tracer("phylactery")

Attribute = str | int | float | bool


class FileSpanExporter(SpanExporter):
    """Appends finished spans to a file, one JSON object per line; at 64 MiB the file is renamed to <name>.1."""

    def __init__(self, path: Path, service: str) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path, self._service = path, service
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write spans in a single append, so that lines of several writers never mix."""
        return self.write("".join([_encode(self._line(span)) + "\n" for span in spans]))

    def export_light(self, span: LightSpan) -> SpanExportResult:
        """Write one LightSpan."""
        own, parent = span.context, span.parent
        parent_id = format(parent.span_id, "016x") if parent else ""
        return self.write(
            f'{{"service": {_quoted(self._service)}, "name": {_quoted(span.name)}, "kind": "{span.kind.name}", '
            f'"trace_id": "{own.trace_id:032x}", "span_id": "{own.span_id:016x}", "parent_id": "{parent_id}", '
            f'"links": [], "start_us": {span.start_time // 1_000}, "end_us": {span.end_time // 1_000}, '
            f'"status": "{span.status.status_code.name}", "attributes": {_encode(span.attributes)}}}\n'
        )

    def write(self, lines: str) -> SpanExportResult:
        """Append complete lines in one write."""
        try:
            with self._lock:
                os.write(self._opened(), lines.encode())
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file; a later span opens it again."""
        with self._lock:
            self._close()

    def _opened(self) -> int:
        """Return the file descriptor, kept open between spans; a file that was removed is created again."""
        if self._descriptor is not None:
            now = os.fstat(self._descriptor)
            if now.st_size > _MAX_FILE_BYTES:
                with suppress(FileNotFoundError):
                    self._path.replace(self._path.with_suffix(self._path.suffix + ".1"))
            if now.st_size > _MAX_FILE_BYTES or not now.st_nlink:
                self._close()
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return self._descriptor

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _line(self, span: ReadableSpan) -> Mapping[str, object]:
        own = span.get_span_context()
        return {
            "service": self._service,
            "name": span.name,
            "kind": span.kind.name,
            "trace_id": format(own.trace_id, "032x") if own else "",
            "span_id": format(own.span_id, "016x") if own else "",
            "parent_id": format(span.parent.span_id, "016x") if span.parent else "",
            "links": [format(link.context.trace_id, "032x") for link in span.links],
            "start_us": (span.start_time or 0) // 1_000,
            "end_us": (span.end_time or 0) // 1_000,
            "status": span.status.status_code.name,
            "attributes": dict(span.attributes or {}),
        }


class _FileSpans(LightProcessor):
    """A span processor that writes every span as soon as it ends."""

    def __init__(self, exporter: FileSpanExporter) -> None:
        self._exporter = exporter

    def on_end(self, span: ReadableSpan) -> None:
        """Append the span."""
        self._exporter.export((span,))

    def on_light_end(self, span: LightSpan) -> None:
        """Append the span."""
        self._exporter.export_light(span)

    def shutdown(self) -> None:
        """Close the file."""
        self._exporter.shutdown()


def span_file(data_dir: Path, service: str) -> Path:
    """Return the path of a service's file of finished spans."""
    return data_dir / "spans" / f"{service}.jsonl"


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The configured telemetry of a process."""

    page: Callable[[], bytes] | None
    """Returns the metrics as Prometheus reads them, from a thread; None if nothing is to be scraped."""
    endings: Sequence[Callable[[], None]]

    def end(self) -> None:
        """Flush and shut down."""
        for ending in self.endings:
            ending()


def configure(service: str, data_dir: Path, otlp_endpoint: str = "", *, scraped: bool = False) -> Telemetry:
    """Configure the process's tracing and metrics, once; ``scraped`` says that Prometheus may read the metrics."""
    resource = Resource.create({"service.name": f"phylactery-{service}"})
    provider = LightProvider(resource=resource)
    provider.add_span_processor(_FileSpans(FileSpanExporter(span_file(data_dir, service), service)))
    endings: list[Callable[[], None]] = [provider.shutdown]
    readers: list[MetricReader] = []
    page: Page | None = None
    # imported late: the exporters are heavy, and most installations have neither
    if otlp_endpoint:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=otlp_endpoint)))
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=otlp_endpoint)))
    if scraped:
        from phylactery_chassis.telemetry.prometheus import Page

        page = Page(meter().known)
        readers.append(page.reader)
    if readers:
        from opentelemetry.sdk.metrics import MeterProvider

        meters = MeterProvider(resource=resource, metric_readers=readers)
        metrics.set_meter_provider(meters)
        instruments.add_zeros()
        endings.append(meters.shutdown)
    trace.set_tracer_provider(provider)
    return Telemetry(page, endings)


def inject() -> dict[str, str]:
    """Return the W3C trace context of the current span as metadata."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier


def extract(carrier: Mapping[str, str]) -> otel_context.Context:
    """Return the trace context a caller sent.

    Its ``tracestate`` is dropped: it may hold anything, nothing here reads it, and the parsing library logs what it
    cannot parse verbatim.
    """
    return _propagator.extract({_TRACE_PARENT: carrier.get(_TRACE_PARENT, "")})


@contextmanager
def span(
    name: str,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    parent: otel_context.Context | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    ends: bool = True,
) -> Iterator[Span]:
    """Open a span for the block. An exception sets error.type to its type; its text stays out of the trace.

    With ``ends`` false, a block that does not raise leaves the span open, and the caller ends it.
    """
    opened: Span | None = light_span(name, kind, parent, attributes)
    if opened is None:
        opened = _tracer.start_span(name, context=parent, kind=kind, attributes=attributes)
    token = otel_context.attach(trace.set_span_in_context(opened, parent))
    try:
        yield opened
    except BaseException as error:
        opened.set_attribute(semconv.ERROR_TYPE, type(error).__name__)
        opened.set_status(Status(StatusCode.ERROR))
        ends = True
        raise
    finally:
        otel_context.detach(token)
        if ends:
            opened.end()


def annotate(attributes: Mapping[str, Attribute]) -> None:
    """Set attributes on the current span."""
    trace.get_current_span().set_attributes(attributes)


def current_trace_id() -> str:
    """Return the trace id of the current span (32 hex digits), or '' if there is none."""
    own = trace.get_current_span().get_span_context()
    return format(own.trace_id, "032x") if own.is_valid else ""


class Ratio:
    """A hit ratio since the process began, exported as a gauge."""

    def __init__(self) -> None:
        self.tries = 0
        self.hits = 0

    def count(self, *, hit: bool) -> None:
        """Record one attempt."""
        self.tries += 1
        self.hits += hit

    def observe(self, _options: CallbackOptions) -> Iterable[Observation]:
        """Return hits divided by attempts; nothing before the first attempt."""
        return [Observation(self.hits / self.tries)] if self.tries else []
