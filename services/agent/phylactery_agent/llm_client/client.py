"""Client of one endpoint for single requests, over the openai library, with limits on time and size.

Redirects are not followed, nothing is retried here, and no text from an endpoint enters an error: it may repeat the key
or what the person said.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, cast

import openai
from httpx2 import AsyncByteStream, AsyncClient, Response, Timeout
from openai import AsyncOpenAI, AsyncStream, Omit
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock

from phylactery_agent.llm_client import errors as faults
from phylactery_agent.llm_client.config import Bounds, Endpoint
from phylactery_agent.llm_client.errors import ModelFault
from phylactery_agent.llm_client.request import Question
from phylactery_agent.llm_client.response import Assembly, Heard
from phylactery_agent.llm_client.retry import moment, retry_after
from phylactery_agent.llm_client.strict import enforced, loosened

OnText = Callable[[str], Awaitable[None]]

_log = get_logger("models")
_USAGE_SECONDS: Final = 5.0
"""How long to wait for the token count after the model reported that its reply is complete."""
_OFTEN: Final = 64
"""The text so far is passed on each time its pieces are one in this many more: reading it costs its length."""
_SILENT: Final = logging.CRITICAL + 1
_NOT_TOLD: Final = ("Arch", "Async", "Lang", "OS", "Package-Version", "Runtime", "Runtime-Version", "Retry-Count")
"""Headers in which the library would describe this machine to every endpoint."""


class _TooLargeError(Exception):
    """Error for a response above the size limit."""


class _Counted(AsyncByteStream):
    """A response's byte stream that is counted as it arrives; reading stops at the limit."""

    def __init__(self, stream: AsyncByteStream, limit: int) -> None:
        self._stream, self._limit, self.size = stream, limit, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self.size += len(piece)
            if self.size > self._limit:
                raise _TooLargeError
            yield piece

    async def aclose(self) -> None:
        """Close the response."""
        await self._stream.aclose()


class EndpointClient:
    """A client for one endpoint."""

    def __init__(self, endpoint: Endpoint, bounds: Bounds, clock: Clock) -> None:
        self.endpoint, self._bounds, self._clock = endpoint, bounds, clock
        self._unmarked: bool | None = None
        """Whether replies begin with reasoning that nothing marks, so that they may be shown only when complete; None
        before the first reply, which tells it."""
        self._refuses: set[str] = set()
        for library in ("openai", "httpx2", "httpcore2"):  # their debug logs contain conversations and headers
            logging.getLogger(library).setLevel(_SILENT)
        connect, pause = bounds.connect_seconds, max(bounds.first_token_seconds, bounds.between_tokens_seconds)
        self._http = AsyncClient(
            follow_redirects=False,
            # A proxy for external hosts must not be used for this machine, and could read unencrypted traffic,
            # including the key.
            trust_env=endpoint.base_url.startswith("https:") and not endpoint.on_loopback,
            timeout=Timeout(pause if bounds.stream else bounds.reply_seconds, connect=connect, pool=connect),
            event_hooks={"response": [self._bound]},
        )
        self._client = AsyncOpenAI(
            api_key=endpoint.api_key,
            admin_api_key="",
            organization="",
            project="",
            webhook_secret="",
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=self._http,
            default_headers=_headers(),
        )

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    async def ask(self, question: Question, on_text: OnText | None = None, *, within: float = math.inf) -> Heard:
        """Return the reply within the given seconds. Raise ModelFault; exceptions from on_text propagate.

        Answers in a form, and the arguments of tools, are to be enforced by the endpoint. One that refuses that is
        asked again without it, and never for the same again.
        """
        wanted, strict = "response_format" if question.form is not None else "strict tools", enforced(question)
        plain = replace(question, form=None)
        if strict == plain or wanted in self._refuses:
            return await self._answered(plain, on_text, within=within)
        try:
            return loosened(await self._answered(strict, on_text, within=within), question)
        except ModelFault as fault:
            if fault.reason != faults.BAD_REQUEST or fault.began:
                raise
        heard = await self._answered(plain, on_text, within=within)
        self._refuses.add(wanted)  # only now: a request that fails without it, too, tells nothing about it
        _log.info("an endpoint refuses", wanted=wanted, model=self.endpoint.model, endpoint=self.endpoint.base_url)
        return heard

    async def _answered(self, question: Question, on_text: OnText | None, *, within: float) -> Heard:
        assembly, received = Assembly(), 0
        try:
            async with self._within(min(self._bounds.reply_seconds, within)), self._opened(question) as response:
                try:
                    await self._read(response, assembly, on_text)
                finally:
                    received = _size(response)
            heard = assembly.heard()
        except ModelFault as fault:
            fault.began = fault.began or received > 0
            fault.heard_bytes = assembly.size_bytes or received
            raise
        self._unmarked = bool(self._unmarked) or assembly.reasons_unmarked
        return heard

    @contextlib.asynccontextmanager
    async def _opened(self, question: Question) -> AsyncIterator[Response]:
        """Send the question and yield the response once its headers arrive; close it at the end."""
        bounds = self._bounds  # an unstreamed answer arrives as a whole
        async with self._within(bounds.first_token_seconds if bounds.stream else bounds.reply_seconds):
            try:
                raw = await self._client.chat.completions.with_raw_response.create(**self._body(question))
            except openai.APIStatusError as error:
                now = moment(self._clock.now_us() / MICROSECONDS)
                wait = retry_after(error.response.headers, now)
                raise faults.of_status(
                    error.status_code, error.body, secret=self.endpoint.api_key, retry_after=wait
                ) from None
            except openai.APIResponseValidationError:
                raise ModelFault(faults.MALFORMED) from None
        response = raw.http_response
        try:
            yield response
        finally:
            await response.aclose()

    async def _read(self, response: Response, assembly: Assembly, on_text: OnText | None) -> None:
        content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not self._bounds.stream or content_type == "application/json":
            try:
                assembly.whole(json.loads(await response.aread()))
            except (ValueError, RecursionError):
                raise ModelFault(faults.MALFORMED) from None
            if on_text is not None and assembly.text:
                await on_text(assembly.text)
            return
        events = AsyncStream[object](cast_to=object, response=response, client=self._client)
        try:
            await self._follow(events.__aiter__(), assembly, on_text)
        finally:
            await events.close()
        if not assembly.finished:
            raise ModelFault(faults.CUT_OFF)

    async def _follow(self, events: AsyncIterator[object], assembly: Assembly, on_text: OnText | None) -> None:
        """Read a stream to its end; once the reply is complete, later events cannot invalidate it."""
        patience, written, enough, text = self._bounds.first_token_seconds, 0, 0, ""
        while True:
            try:
                async with self._within(patience):
                    try:
                        chunk = await anext(events)
                    except StopAsyncIteration:
                        return
                    except openai.APIError as error:
                        if error.body is None:
                            raise
                        raise faults.of_error_event(error.body, secret=self.endpoint.api_key) from None
                    except (ValueError, RecursionError):
                        raise ModelFault(faults.MALFORMED) from None
                grown = assembly.event(chunk)
            except ModelFault:
                if assembly.finished:
                    return
                raise
            written += grown
            if on_text is not None and (assembly.finished or (written >= enough and self._unmarked is False)):
                enough = written + written // _OFTEN + 1
                text, before = assembly.text, text
                if text != before:
                    await on_text(text)
            patience = self._bounds.between_tokens_seconds
            if assembly.finished:
                patience = min(patience, _USAGE_SECONDS)

    @contextlib.asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        """Limit a block's time and translate errors of the library and the network. Raise ModelFault."""
        try:
            async with asyncio.timeout(seconds) as bound:
                yield
        except TimeoutError:
            if not bound.expired():
                raise
            raise ModelFault(faults.TIMEOUT) from None
        except openai.APITimeoutError:
            raise ModelFault(faults.TIMEOUT) from None
        except openai.APIConnectionError:
            raise ModelFault(faults.UNREACHABLE) from None
        except _TooLargeError:
            raise ModelFault(faults.TOO_LARGE, began=True) from None

    async def _bound(self, response: Response) -> None:
        """Limit what is read of a response. A compressed response is rejected, because its size has no bound."""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ModelFault(faults.MALFORMED, response.status_code)
        response.stream = _Counted(cast("AsyncByteStream", response.stream), self._bounds.reply_bytes)

    def _body(self, question: Question) -> dict[str, Any]:
        bounds = self._bounds
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": question.messages, "stream": bounds.stream}
        if question.tools:
            body["tools"] = question.tools
        if question.form is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": question.form}
        if bounds.stream and bounds.stream_usage:
            body["stream_options"] = {"include_usage": True}
        if bounds.reply_tokens_field != "none":
            body[bounds.reply_tokens_field] = bounds.reply_tokens
        if bounds.temperature is not None:
            body["temperature"] = bounds.temperature
        if not self.endpoint.api_key:
            body["extra_headers"] = {"Authorization": Omit()}
        return body


def _headers() -> dict[str, str]:
    """Return the headers of every request: the client's own, with the library's removed."""
    gone = [f"X-Stainless-{name}" for name in _NOT_TOLD] + ["OpenAI-Organization", "OpenAI-Project"]
    ours = {"User-Agent": "phylactery-agent", "Accept-Encoding": "identity"}
    return cast("dict[str, str]", {**ours, **dict.fromkeys(gone, Omit())})


def _size(response: Response) -> int:
    return response.stream.size if isinstance(response.stream, _Counted) else 0
