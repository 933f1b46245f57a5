"""Structured logging with structlog: one JSON object per line on standard error, correlated with the current span."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog
from opentelemetry import trace

_FORBIDDEN = ("code", "token", "authorization", "permit", "arguments", "args", "password", "secret", "receipt")
"""Keys whose values are never logged, so that a mistake in one call does not become a leak."""


class _StandardError:
    """The current standard error, looked up at each write because a test or supervisor may have replaced it.

    A line that cannot be written (full disk, closed pipe) is dropped: logging must not fail the call.
    """

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.flush()


def _redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key in event:
        if key.lower() in _FORBIDDEN:
            event[key] = "«withheld»"
    return event


def _correlate(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = format(context.trace_id, "032x")
        event["span_id"] = format(context.span_id, "016x")
    return event


def configure(service: str, level: str = "INFO") -> None:
    """Configure the process's logging; ``level`` is a standard name such as INFO."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _correlate,
            _redact,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.bind_contextvars(service=service)


def get_logger(name: str) -> Any:
    """Return a logger that adds its name to each line as ``component``."""
    return structlog.get_logger(component=name)  # lazy: bind() here would freeze the configuration before configure()


class Sampled:
    """Log lines that strangers cause as often as they like: of each key one in a while, with how many there were."""

    def __init__(self, logger: Any, seconds: float = 60.0) -> None:
        self._logger, self._seconds = logger, seconds
        self._written: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def warning(self, event: str, *, key: str = "", **values: Any) -> None:
        """Write a warning, unless one of this key was written a short time ago. Keys are few and our own."""
        now = time.monotonic()
        count = self._since.get(key, 0) + 1
        if now - self._written.get(key, -self._seconds) < self._seconds:
            self._since[key] = count
            return
        self._written[key], self._since[key] = now, 0
        self._logger.warning(event, times=count, **values)
