"""Metrics of model requests: duration, failure reason and tokens. They never contain message content."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import meter

PROVIDER: Final = "openai"
"""The kind of API in use, independent of the provider."""

_seconds = meter().create_histogram(
    semconv.GEN_AI_DURATION,
    unit="s",
    description="requests to models",
    explicit_bucket_boundaries_advisory=[0.01 * 2**power for power in range(14)],
)
_tokens = meter().create_histogram(
    semconv.GEN_AI_TOKEN_USAGE,
    unit="{token}",
    description="tokens of requests",
    explicit_bucket_boundaries_advisory=[4**power for power in range(14)],
)


class Measured:
    """One request being measured; the caller reports its result."""

    def __init__(self, model: str) -> None:
        self._about = {
            semconv.GEN_AI_OPERATION: semconv.CHAT,
            semconv.GEN_AI_PROVIDER: PROVIDER,
            semconv.GEN_AI_REQUEST_MODEL: model,
        }
        self._fault = ""
        self._started = time.perf_counter()

    def failed(self, reason: str) -> None:
        """Record the stable error code of a failed request."""
        self._fault = reason

    def answered(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Record the tokens used."""
        for kind, count in (("input", prompt_tokens), ("output", completion_tokens)):
            _tokens.record(count, {**self._about, semconv.GEN_AI_TOKEN_TYPE: kind})

    def end(self) -> None:
        """Record the duration."""
        fault = {semconv.ERROR_TYPE: self._fault} if self._fault else {}
        _seconds.record(time.perf_counter() - self._started, {**self._about, **fault})


@contextmanager
def measured(model: str) -> Iterator[Measured]:
    """Measure one request to a configured model; any other exception leaving the block is recorded as its fault."""
    one = Measured(model)
    try:
        yield one
    except BaseException as error:
        one.failed(type(error).__name__)
        raise
    finally:
        one.end()
