"""The gateway's metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc
from opentelemetry.metrics import Meter
from phylactery_chassis.telemetry import calls
from phylactery_chassis.telemetry.instruments import RPC_SECONDS, Words, each, meter, start_at_zero
from phylactery_chassis.telemetry.semconv import (
    CHANNEL,
    ERROR_TYPE,
    GATEWAY_ACTION,
    GATEWAY_REPEATED,
    GATEWAY_TURN_STATE,
    OTHER,
    RPC_METHOD,
    RPC_STATUS,
)

from phylactery_gateway.channels.port import Action
from phylactery_gateway.store.turns import TurnState

REFUSALS: Final = ("signature", "too_large", "too_slow", "no_room", "disconnected", "store")
"""Why a webhook is not taken."""
_ENDS: Final = ("full", "head_slow", "write_slow", "malformed", "not_served")
"""Why a connection is ended early."""
_AGENT_CODES: Final = tuple(code.name for code in grpc.StatusCode if code is not grpc.StatusCode.OK)
_MOST_CODES: Final = 64
"""How many codes of channels are told apart: a channel makes its own."""


class Metrics:
    """The gateway's instruments. Create one per process."""

    def __init__(self, instruments: Meter | None = None) -> None:
        """``instruments`` is the meter to create them with; None uses the process's."""
        source = instruments or meter()
        self._ack_ms = source.create_histogram(
            "gateway.webhook.ack", unit="ms", description="from a webhook's arrival to its acknowledgement"
        )
        self._refused = source.create_counter(
            "gateway.webhook.refused", unit="{webhook}", description="webhooks that were not taken"
        )
        self._ended = source.create_counter(
            "gateway.connections.ended", unit="{connection}", description="HTTP connections that were ended early"
        )
        self._elements = source.create_counter(
            "gateway.elements", unit="{element}", description="messages and statuses in webhooks"
        )
        self._turns = source.create_counter(
            "gateway.turns", unit="{turn}", description="turns that the agent took or refused"
        )
        self._agent = source.create_counter(
            "gateway.agent.failures", unit="{turn}", description="turns that are tried again"
        )
        self._sent = source.create_counter("gateway.sent", unit="{message}", description="messages that a channel took")
        self._calls = source.create_histogram(
            "gateway.rpc.duration",
            unit="s",
            description="RPCs served over HTTP",
            explicit_bucket_boundaries_advisory=RPC_SECONDS,
        )
        self._failures = source.create_counter(
            "gateway.send.failures", unit="{message}", description="messages that a channel did not take"
        )
        self._codes = Words(_MOST_CODES)

    def begin(self, channels: Iterable[str]) -> None:
        """Export what is counted of these channels as 0 before it happens."""
        names = tuple(channels)
        start_at_zero(self._refused, each({CHANNEL: names, ERROR_TYPE: REFUSALS}))
        start_at_zero(self._ended, each({ERROR_TYPE: _ENDS}))
        start_at_zero(self._elements, each({CHANNEL: names, GATEWAY_REPEATED: (False, True)}))
        start_at_zero(self._turns, each({CHANNEL: names, GATEWAY_TURN_STATE: (TurnState.GIVEN, TurnState.REFUSED)}))
        start_at_zero(self._agent, each({ERROR_TYPE: _AGENT_CODES}))
        start_at_zero(self._sent, each({CHANNEL: names}))
        start_at_zero(self._failures, each({CHANNEL: names, ERROR_TYPE: (OTHER,), GATEWAY_ACTION: Action}))

    def begin_calls(self, methods: Iterable[str]) -> None:
        """Export the calls of these methods over HTTP as 0 before the first one."""
        calls.start_at_zero(methods)

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
        self._failures.add(1, {CHANNEL: channel, ERROR_TYPE: self._codes.bounded(code), GATEWAY_ACTION: action})

    def called(self, method: str, status: str, seconds: float) -> None:
        """Record an RPC that was served over HTTP."""
        self._calls.record(seconds, {RPC_METHOD: method, RPC_STATUS: status})
        calls.count(method, "CANCELLED" if status == "canceled" else status.upper())
