"""How many calls a process served, and whether they failed: what an error rate is made of.

The histogram of durations has the status too, but of every method and status only once there was such a call; this
counter has a closed set of outcomes and begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, TypeAlias, get_args

from phylactery_chassis.telemetry import instruments, semconv

Outcome: TypeAlias = Literal["ok", "refused", "failed"]
"""``failed`` is the server's fault; ``refused`` is the caller's, or a limit of theirs, or they hung up."""

SERVER_FAULTS: Final = frozenset(
    {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
)
"""The status codes that are the server's fault by OpenTelemetry's gRPC conventions."""

_calls = instruments.meter().create_counter(
    semconv.RPC_SERVER_CALLS, unit="{call}", description="calls served, by whether they failed"
)


def start_at_zero(methods: Iterable[str]) -> None:
    """Export the calls of these methods as 0 before the first one."""
    instruments.start_at_zero(
        _calls, instruments.each({semconv.RPC_METHOD: methods, semconv.RPC_OUTCOME: get_args(Outcome)})
    )


def count(method: str, code: str) -> None:
    """Count a call by its method and its status code, as gRPC names it."""
    outcome: Outcome = "ok" if code == "OK" else "failed" if code in SERVER_FAULTS else "refused"
    _calls.add(1, {semconv.RPC_METHOD: method, semconv.RPC_OUTCOME: outcome})
