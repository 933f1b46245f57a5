"""The gateway's metrics."""

from __future__ import annotations

from opentelemetry.metrics import Meter
from phylactery_chassis.telemetry.semconv import (
    CHANNEL,
    ERROR_TYPE,
    GATEWAY_ACTION,
    GATEWAY_REPEATED,
    GATEWAY_TURN_STATE,
    RPC_METHOD,
    RPC_STATUS,
)
from phylactery_chassis.telemetry.telemetry import meter


class Metrics:
    """The gateway's instruments. Create one per process."""

    def __init__(self, instruments: Meter | None = None) -> None:
        """``instruments`` is the meter to create them with; None uses the process's."""
        source = instruments or meter()
        self._ack_ms = source.create_histogram("gateway.webhook.ack", unit="ms")
        self._refused = source.create_counter("gateway.webhook.refused")
        self._ended = source.create_counter("gateway.connections.ended")
        self._elements = source.create_counter("gateway.elements")
        self._turns = source.create_counter("gateway.turns")
        self._agent = source.create_counter("gateway.agent.failures")
        self._sent = source.create_counter("gateway.sent")
        self._calls = source.create_histogram("gateway.rpc.duration", unit="s")
        self._failures = source.create_counter("gateway.send.failures")

    def acknowledged(self, channel: str, milliseconds: float, elements: int, new: int) -> None:
        """Record an acknowledged webhook."""
        self._ack_ms.record(milliseconds, {CHANNEL: channel})
        self._elements.add(new, {CHANNEL: channel, GATEWAY_REPEATED: False})
        self._elements.add(elements - new, {CHANNEL: channel, GATEWAY_REPEATED: True})

    def refused(self, channel: str, reason: str) -> None:
        """Count a webhook that was not taken."""
        self._refused.add(1, {CHANNEL: channel, ERROR_TYPE: reason})

    def connection_ended(self, reason: str) -> None:
        """Count a connection that was ended early."""
        self._ended.add(1, {ERROR_TYPE: reason})

    def turn(self, channel: str, state: str) -> None:
        """Count a turn that the agent took or refused."""
        self._turns.add(1, {CHANNEL: channel, GATEWAY_TURN_STATE: state})

    def agent_failed(self, status: str) -> None:
        """Count a turn that is tried again."""
        self._agent.add(1, {ERROR_TYPE: status})

    def sent(self, channel: str) -> None:
        """Count a message that was sent."""
        self._sent.add(1, {CHANNEL: channel})

    def send_failed(self, channel: str, code: str, action: str) -> None:
        """Count a message that was not sent, by the channel's code and by what is done about it."""
        self._failures.add(1, {CHANNEL: channel, ERROR_TYPE: code, GATEWAY_ACTION: action})

    def called(self, method: str, status: str, seconds: float) -> None:
        """Record an RPC that was served over HTTP."""
        self._calls.record(seconds, {RPC_METHOD: method, RPC_STATUS: status})
