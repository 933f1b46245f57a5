"""Router over all endpoints in order: retries where they may help, then the fallback, then failure."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from phylactery_chassis.telemetry import semconv, telemetry
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock, SystemClock

from phylactery_agent.llm_client import errors
from phylactery_agent.llm_client.breaker import Breaker, Ticket
from phylactery_agent.llm_client.client import EndpointClient, OnText
from phylactery_agent.llm_client.config import Endpoint, ModelConfig
from phylactery_agent.llm_client.errors import ModelFault
from phylactery_agent.llm_client.metrics import PROVIDER, measured
from phylactery_agent.llm_client.request import Answered, Question, Spent
from phylactery_agent.llm_client.response import Heard, estimated_tokens
from phylactery_agent.llm_client.retry import RetryPolicy
from phylactery_agent.ports import ModelUnavailableError

Sleep = Callable[[float], Awaitable[None]]
_log = get_logger("models")

_DOUBTED: Final = 8
"""A reported token count is raised to at least the estimate divided by this: no tokenizer has longer tokens."""


@dataclass(frozen=True, slots=True)
class _Place:
    client: EndpointClient
    breaker: Breaker


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One request: attempt number, timeout, the circuit breaker's ticket, and its turn."""

    number: int
    seconds: float
    ticket: Ticket
    turn: str


class Models:
    """The endpoints of a process."""

    def __init__(
        self,
        config: ModelConfig,
        *,
        clock: Clock | None = None,
        random: Random | None = None,
        sleep: Sleep = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the endpoints without connecting; tests pass their own random, sleep and time sources."""
        self.config = config
        self._sleep, self._monotonic = sleep, monotonic
        self._policy = RetryPolicy(
            attempts=config.attempts,
            backoff_seconds=config.backoff_seconds,
            longest_wait=config.retry_after_seconds,
            random=random or Random(),  # noqa: S311 - spreads retries, protects nothing
        )
        self._places = [
            _Place(
                EndpointClient(endpoint, config.bounds, clock or SystemClock()),
                Breaker(config.breaker_failures, config.breaker_seconds, monotonic),
            )
            for endpoint in config.endpoints
        ]

    async def close(self) -> None:
        """Close every connection."""
        for place in self._places:
            await place.client.close()

    def most(self, question: Question) -> tuple[int, int]:
        """Return the maximum expected tokens and cost, in millionths of the currency, of one reply."""
        prompt, completion = estimated_tokens(question.size_bytes), self.config.bounds.reply_tokens
        return prompt + completion, max(one.cost_micros(prompt, completion) for one in self.config.endpoints)

    async def ask(self, question: Question, spent: Spent, on_text: OnText | None = None, *, turn: str = "") -> Answered:
        """Return the reply of the first endpoint that gives one, and add the total usage to spent.

        ``turn`` is the turn that makes the request: an endpoint that fails in one turn only stays available to the
        others.

        Raise ModelUnavailableError with the reason of the first endpoint. Exceptions from on_text propagate.
        """
        given_up: list[tuple[Endpoint, ModelFault]] = []
        end = self._monotonic() + self.config.total_seconds
        for left in range(len(self._places), 0, -1):
            place = self._places[-left]
            now = self._monotonic()
            try:
                heard = await self._insist(place, question, spent, on_text, until=now + (end - now) / left, turn=turn)
            except ModelFault as fault:
                given_up.append((place.client.endpoint, fault))
                _log_fault(place.client.endpoint, fault, question)
            else:
                return Answered(heard, place.client.endpoint)
        raise ModelUnavailableError(
            given_up[0][1].reason, "; ".join(f"{endpoint}: {fault}" for endpoint, fault in given_up)
        )

    async def _insist(
        self, place: _Place, question: Question, spent: Spent, on_text: OnText | None, *, until: float, turn: str
    ) -> Heard:
        """Call one endpoint with retries, within its share of the time. Raise ModelFault."""
        made = 0
        while True:
            ticket = place.breaker.admit()
            if ticket is None:
                raise ModelFault(errors.CIRCUIT_OPEN)
            made += 1
            try:
                attempt = _Attempt(made, until - self._monotonic(), ticket, turn)
                return await self._once(place, attempt, question, spent, on_text)
            except ModelFault as fault:
                pause = self._policy.pause(made, fault)
                if pause is None or self._monotonic() + pause >= until:
                    raise
            await self._sleep(pause)

    async def _once(
        self, place: _Place, attempt: _Attempt, question: Question, spent: Spent, on_text: OnText | None
    ) -> Heard:
        endpoint, ticket, fault = place.client.endpoint, attempt.ticket, None
        spent.requests += 1
        leaving = _leaving(place.breaker, ticket)
        with _span(endpoint, attempt.number) as span, leaving, measured(endpoint.model) as request:
            try:
                heard = _counted(await place.client.ask(question, on_text, within=attempt.seconds), question)
            except ModelFault as error:
                fault = error
                request.failed(fault.reason)
                span.set_attribute(semconv.ERROR_TYPE, fault.reason)
                span.set_status(Status(StatusCode.ERROR))
            else:
                spent.add(endpoint, heard.prompt_tokens or 0, heard.completion_tokens or 0)
                request.answered(heard.prompt_tokens or 0, heard.completion_tokens or 0)
                _describe(span, heard, endpoint)
        if fault is None:
            if place.breaker.succeeded(ticket):
                _log.info("circuit closed", model=endpoint.model)
            return heard
        if fault.began:
            written = min(estimated_tokens(fault.heard_bytes), self.config.bounds.reply_tokens)
            spent.add(endpoint, estimated_tokens(question.size_bytes), written)
        self._tell(place, attempt, fault)
        raise fault

    def _tell(self, place: _Place, attempt: _Attempt, fault: ModelFault) -> None:
        """Report to the breaker. An endpoint that rejects an invalid request is healthy."""
        if not fault.ails:
            place.breaker.succeeded(attempt.ticket)
        elif place.breaker.failed(attempt.ticket, self._policy.hold(fault), turn=attempt.turn):
            _log.warning("circuit opened", model=place.client.endpoint.model, reason=fault.reason)


def _log_fault(endpoint: Endpoint, fault: ModelFault, question: Question) -> None:
    shown = "\n".join(json.dumps(one, ensure_ascii=False) for one in question.messages if one.get("role") != "system")
    _log.warning(
        "a model gave no reply",
        model=endpoint.model,
        endpoint=endpoint.base_url,
        reason=fault.reason,
        status=fault.status,
        error_code=fault.code,
        said=errors.said_of(fault, secret=endpoint.api_key, shown=shown),
    )


def _counted(heard: Heard, question: Question) -> Heard:
    """Return the reply with its token counts, estimated if the endpoint reported none or zero.

    A count far below what was sent and received is raised to a fraction of the estimate; otherwise budgets would never
    stop a run.
    """
    return replace(
        heard,
        prompt_tokens=_believed(heard.prompt_tokens, question.size_bytes),
        completion_tokens=_believed(heard.completion_tokens, heard.size_bytes),
    )


def _believed(reported: int | None, size_bytes: int) -> int:
    estimate = estimated_tokens(size_bytes)
    return max(reported, estimate // _DOUBTED) if reported else estimate


@contextlib.contextmanager
def _leaving(breaker: Breaker, ticket: Ticket) -> Iterator[None]:
    """Abandon the ticket if the block is left by a cancellation or by an exception of the listener."""
    try:
        yield
    except BaseException:
        breaker.abandoned(ticket)
        raise


@contextlib.contextmanager
def _span(endpoint: Endpoint, attempt: int) -> Iterator[Span]:
    """Open the span of one request: model, endpoint and outcome, without message content."""
    where = urlsplit(endpoint.base_url)
    attributes: dict[str, telemetry.Attribute] = {
        semconv.GEN_AI_OPERATION: semconv.CHAT,
        semconv.GEN_AI_PROVIDER: PROVIDER,
        semconv.GEN_AI_REQUEST_MODEL: endpoint.model,
        semconv.SERVER_ADDRESS: where.hostname or "",
        semconv.ATTEMPT: attempt,
    }
    if where.port is not None:
        attributes[semconv.SERVER_PORT] = where.port
    with telemetry.span(f"{semconv.CHAT} {endpoint.model}", kind=SpanKind.CLIENT, attributes=attributes) as span:
        yield span


def _describe(span: Span, heard: Heard, endpoint: Endpoint) -> None:
    span.set_attribute(semconv.GEN_AI_INPUT_TOKENS, heard.prompt_tokens or 0)
    span.set_attribute(semconv.GEN_AI_OUTPUT_TOKENS, heard.completion_tokens or 0)
    words: Sequence[tuple[str, str]] = (
        (semconv.GEN_AI_RESPONSE_MODEL, heard.model),
        (semconv.GEN_AI_FINISH_REASONS, heard.finish_reason),
    )
    for name, word in words:
        if word and word.isprintable() and not (endpoint.api_key and endpoint.api_key in word):
            span.set_attribute(name, [word] if name == semconv.GEN_AI_FINISH_REASONS else word)
