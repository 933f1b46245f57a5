"""Spans as our own code makes them: few attributes, no events, ended by the block they stand for.

The SDK's span takes several times as long, for limits, locks and events nobody here uses. What a processor of the SDK
gets at the end is the SDK's own ReadableSpan, so collectors and tests see no difference; ours take the span as it is.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider, sampling
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

_SCOPE = InstrumentationScope("phylactery")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_UNSET = Status(StatusCode.UNSET)


class LightProcessor(SpanProcessor):
    """A processor that also takes our own spans without their being made into the SDK's."""

    @abstractmethod
    def on_light_end(self, span: LightSpan) -> None:
        """Take a span that has ended."""


class LightSpan(Span):
    """A span that is sampled; see the module. What it holds is for processors to read."""

    def __init__(
        self,
        provider: TracerProvider,
        name: str,
        kind: SpanKind,
        parent: SpanContext | None,
        attributes: Mapping[str, AttributeValue] | None,
    ) -> None:
        self._provider, self.name, self.kind, self.parent = provider, name, kind, parent
        self.attributes = dict(attributes or {})
        self.status = _UNSET
        ids = provider.id_generator
        self.context = SpanContext(
            parent.trace_id if parent else ids.generate_trace_id(),
            ids.generate_span_id(),
            is_remote=False,
            trace_flags=_SAMPLED,
            trace_state=parent.trace_state if parent else None,
        )
        self.start_time, self.end_time = time.time_ns(), 0

    def get_span_context(self) -> SpanContext:
        """Return what children and callees need."""
        return self.context

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Set one attribute."""
        self.attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Set several."""
        self.attributes.update(attributes)

    def add_event(self, name: str, attributes: object = None, timestamp: int | None = None) -> None:
        """Keep nothing: our spans have no events, and a library's are not for our files."""

    def record_exception(
        self,
        exception: BaseException,
        attributes: object = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Keep nothing: an exception's text can hold a value."""

    def update_name(self, name: str) -> None:
        """Give it another name."""
        self.name = name

    def is_recording(self) -> bool:
        """Return whether it still takes attributes."""
        return not self.end_time

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:  # noqa: ARG002
        """Say how it ended; a description is not kept, for it can hold a value."""
        self.status = Status(status.status_code if isinstance(status, Status) else status)

    def end(self, end_time: int | None = None) -> None:
        """Hand the span to every processor, once."""
        if self.end_time:
            return
        self.end_time = end_time or time.time_ns()
        readable = None
        for processor in self._provider._active_span_processor._span_processors:  # noqa: SLF001 - the SDK has no public way to hand over a span
            if isinstance(processor, LightProcessor):
                processor.on_light_end(self)
            else:
                readable = readable or self._readable()
                processor.on_end(readable)

    def _readable(self) -> ReadableSpan:
        return ReadableSpan(
            self.name,
            context=self.context,
            parent=self.parent,
            resource=self._provider.resource,
            attributes=self.attributes,
            kind=self.kind,
            status=self.status,
            start_time=self.start_time,
            end_time=self.end_time,
            instrumentation_scope=_SCOPE,
        )


def light_span(
    name: str, kind: SpanKind, parent: otel_context.Context | None, attributes: Mapping[str, AttributeValue] | None
) -> LightSpan | None:
    """Begin a span; None where tracing is not set up, another sampler is, or the caller is not sampled."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider) or provider.sampler is not sampling.DEFAULT_ON:
        return None
    above: SpanContext | None = trace.get_current_span(parent).get_span_context()
    if above is not None and not above.is_valid:
        above = None
    if above is not None and not above.trace_flags.sampled:
        return None
    return LightSpan(provider, name, kind, above, attributes)
