"""An OTLP collector on loopback that keeps what it receives."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric


class Collector(trace_service_pb2_grpc.TraceServiceServicer, metrics_service_pb2_grpc.MetricsServiceServicer):
    """The received spans, the last value of each metric, and all bytes, for checks of what must not be in them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Metric] = {}
        self.raw = b""
        self.endpoint = ""
        self._lock = threading.Lock()

    def Export(self, request: Any, _context: Any) -> Any:
        """Receive spans or metrics."""
        with self._lock:
            self.raw += request.SerializeToString()
            if isinstance(request, trace_service_pb2.ExportTraceServiceRequest):
                self.spans += [s for r in request.resource_spans for c in r.scope_spans for s in c.spans]
                return trace_service_pb2.ExportTraceServiceResponse()
            self.metrics |= {m.name: m for r in request.resource_metrics for c in r.scope_metrics for m in c.metrics}
            return metrics_service_pb2.ExportMetricsServiceResponse()

    def points(self, name: str) -> dict[frozenset[tuple[str, str]], Any]:
        """Return a metric's latest values by attributes: a number, or a histogram's count and sum."""
        metric = self.metrics.get(name)
        if metric is None:
            return {}
        kind = metric.WhichOneof("data")
        return {
            frozenset((one.key, one.value.string_value) for one in point.attributes): (point.count, point.sum)
            if kind == "histogram"
            else point.as_int or point.as_double
            for point in getattr(metric, kind).data_points
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a collector during the block."""
    server, servicer = grpc.server(ThreadPoolExecutor(2)), Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(servicer, server)
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(servicer, server)
    servicer.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield servicer
    finally:
        server.stop(None).wait()
