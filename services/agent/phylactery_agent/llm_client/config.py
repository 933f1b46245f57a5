"""Validated endpoints and limits from the settings: an error is reported at start, not at the first request."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from phylactery_chassis.errors import StartError
from phylactery_chassis.settings import is_loopback, read_secret
from pydantic import SecretStr

from phylactery_agent.llm_client.settings import ModelSettings, variable

_KEY = re.compile(r"[\x21-\x7e]{1,4096}")
_MODEL = re.compile(r"[^\x00-\x20\x7f]{1,256}")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model at one URL, with its price per million tokens, which is millionths of the currency per token."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    input_price: float = 0.0
    output_price: float = 0.0

    @property
    def on_loopback(self) -> bool:
        """Return True if the endpoint is on this machine."""
        return is_loopback(urlsplit(self.base_url).hostname or "")

    def cost_micros(self, prompt_tokens: int, completion_tokens: int) -> int:
        """Return the cost of tokens, in millionths of the currency, rounded up."""
        return math.ceil(prompt_tokens * self.input_price + completion_tokens * self.output_price)

    def __str__(self) -> str:
        """Return the endpoint's name for people."""
        return f"{self.model} at {self.base_url}"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time and size limits of one attempt at an endpoint; see the settings of the same names."""

    connect_seconds: float
    first_token_seconds: float
    between_tokens_seconds: float
    reply_seconds: float
    reply_bytes: int
    reply_tokens: int
    reply_tokens_field: str
    temperature: float | None
    stream: bool
    stream_usage: bool


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of one run: calls, tokens, and millionths of the currency; 0 means no limit."""

    calls: int
    tokens: int
    cost_micros: int


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The complete model configuration: the endpoints in the order they are tried, and their limits."""

    endpoints: tuple[Endpoint, ...]
    bounds: Bounds
    limits: RunLimits
    total_seconds: float
    attempts: int
    backoff_seconds: float
    retry_after_seconds: float
    breaker_failures: int
    breaker_seconds: float


def model_config(settings: ModelSettings) -> ModelConfig | None:
    """Return the configuration from the settings, or None for static mode.

    Raise StartError with the name of the invalid variable.
    """
    if not settings.model_base_url:
        if settings.model_fallback_base_url:
            raise StartError(
                f"{variable('model_fallback_base_url')} is set and {variable('model_base_url')} is not: "
                "name the first endpoint there, or remove the fallback"
            )
        return None
    main = _endpoint(settings, "model", settings.model_base_url, settings.model)
    endpoints = (main, _fallback(settings, main)) if settings.model_fallback else (main,)
    if settings.model_fallback_base_url and not settings.model_fallback:
        raise StartError(
            f"{variable('model_fallback_base_url')} is set and {variable('model_fallback')} is not: name the model"
        )
    if settings.model_run_cost and not any(one.input_price or one.output_price for one in endpoints):
        raise StartError(
            "AGENT_MODEL_RUN_COST limits money and no price is known: "
            "set AGENT_MODEL_INPUT_PRICE and AGENT_MODEL_OUTPUT_PRICE, for a million tokens"
        )
    return ModelConfig(
        endpoints=endpoints,
        bounds=_bounds(settings),
        limits=RunLimits(
            calls=settings.model_run_calls,
            tokens=settings.model_run_tokens,
            cost_micros=math.floor(settings.model_run_cost * 1_000_000),
        ),
        total_seconds=settings.model_total_seconds,
        attempts=settings.model_attempts,
        backoff_seconds=settings.model_backoff_seconds,
        retry_after_seconds=settings.model_retry_after_seconds,
        breaker_failures=settings.model_breaker_failures,
        breaker_seconds=settings.model_breaker_seconds,
    )


def _bounds(settings: ModelSettings) -> Bounds:
    return Bounds(
        connect_seconds=settings.model_connect_seconds,
        first_token_seconds=settings.model_first_token_seconds,
        between_tokens_seconds=settings.model_between_tokens_seconds,
        reply_seconds=settings.model_reply_seconds,
        reply_bytes=settings.model_reply_bytes,
        reply_tokens=settings.model_reply_tokens,
        reply_tokens_field=settings.model_reply_tokens_field,
        temperature=settings.model_temperature,
        stream=settings.model_stream,
        stream_usage=settings.model_stream_usage,
    )


def _fallback(settings: ModelSettings, main: Endpoint) -> Endpoint:
    """Return the fallback endpoint. A key is sent only to the endpoint it was set for."""
    prices = settings.model_fallback_input_price, settings.model_fallback_output_price
    if not settings.model_fallback_base_url:
        own = _key(settings, "model_fallback") or main.api_key
        return Endpoint(main.base_url, _model(settings.model_fallback, "model_fallback"), own, *_prices(prices, main))
    elsewhere = _endpoint(settings, "model_fallback", settings.model_fallback_base_url, settings.model_fallback)
    return Endpoint(elsewhere.base_url, elsewhere.model, elsewhere.api_key, *_prices(prices, main))


def _prices(own: tuple[float | None, float | None], main: Endpoint) -> tuple[float, float]:
    first, second = own
    return main.input_price if first is None else first, main.output_price if second is None else second


def _endpoint(settings: ModelSettings, name: str, base_url: str, model: str) -> Endpoint:
    parts, key = _checked_url(base_url, f"{name}_base_url"), _key(settings, name)
    if key and parts.scheme == "http" and not is_loopback(parts.hostname or "") and not settings.model_allow_plaintext:
        raise StartError(
            f"{variable(f'{name}_base_url')} would carry the key in plain text: use https, "
            "or set AGENT_MODEL_ALLOW_PLAINTEXT where the network is private"
        )
    return Endpoint(
        base_url.rstrip("/"), _model(model, name), key, settings.model_input_price, settings.model_output_price
    )


def _model(model: str, name: str) -> str:
    if not model:
        raise StartError(
            f"{variable('model_base_url')} is set and {variable(name)} is not: name the model the endpoint serves"
        )
    if not _MODEL.fullmatch(model):
        raise StartError(f"{variable(name)} is not a model name: write it without spaces, as the endpoint lists it")
    return model


def _key(settings: ModelSettings, name: str) -> str:
    """Return the key of an endpoint; error messages contain no part of it."""
    path: Path | None = getattr(settings, f"{name}_api_key_file")
    inline: SecretStr = getattr(settings, f"{name}_api_key")
    where = variable(f"{name}_api_key_file" if path else f"{name}_api_key")
    try:
        key = read_secret(path, where) if path else inline.get_secret_value().strip()
    except ValueError as error:
        raise StartError(str(error)) from None
    if path and not key:
        raise StartError(f"{where}: {path} is empty; write the endpoint's key into it")
    if key and not _KEY.fullmatch(key):
        raise StartError(f"{where} is not a key: it has spaces, line breaks or characters that no header can carry")
    return key


def _checked_url(url: str, name: str) -> SplitResult:
    """Return the parts of a base URL. Error messages omit the URL, which may contain a password."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise StartError(f"{variable(name)} is not an http or https URL; write it as http://127.0.0.1:11434/v1")
    if "@" in parts.netloc:
        raise StartError(f"{variable(name)} holds a user or password: set {variable('model_api_key')} instead")
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise StartError(f"{variable(name)} has a query or a fragment, which no path can be added to: remove it")
    return parts
