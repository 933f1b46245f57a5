"""Model settings of the agent; endpoint settings may also be given as PHYLACTERY_MODEL_BASE_URL etc."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from phylactery_chassis.settings import ServiceSettings
from pydantic import Field, SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

_MIB = 1024 * 1024

SHARED = (
    "model_base_url",
    "model",
    "model_api_key",
    "model_api_key_file",
    "model_fallback",
    "model_fallback_base_url",
    "model_fallback_api_key",
    "model_fallback_api_key_file",
)
"""Settings shared by all of Phylactery as PHYLACTERY_…; AGENT_… takes precedence, and an empty value disables it."""


def variable(field: str) -> str:
    """Return the environment variable that sets a field, or that would set it."""
    own = f"AGENT_{field.upper()}"
    return own if own in os.environ or field not in SHARED else f"PHYLACTERY_{field.upper()}"


class _SharedNames(PydanticBaseSettingsSource):
    """Settings source for PHYLACTERY_MODEL….

    An empty variable counts as unset: compose files pass through unset ones.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        """Return one value, or None if it is not set."""
        set_to = os.environ.get(f"PHYLACTERY_{field_name.upper()}") if field_name in SHARED else None
        return set_to or None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """Return every value that is set."""
        return {name: value for name in SHARED if (value := os.environ.get(f"PHYLACTERY_{name.upper()}"))}


class ModelSettings(ServiceSettings):
    """The agent's model settings."""

    model_config = SettingsConfigDict(env_prefix="AGENT_", extra="ignore")

    model_base_url: str = Field(
        "", description="OpenAI-compatible endpoint, for example http://127.0.0.1:11434/v1; empty is static mode"
    )
    model: str = Field("", max_length=256, description="name of the model there")
    model_api_key: SecretStr = Field(SecretStr(""), description="its key; none where the endpoint asks for none")
    model_api_key_file: Path | None = Field(None, description="file with that key instead")
    model_fallback: str = Field(
        "", max_length=256, description="model asked where the first one does not answer; empty is none"
    )
    model_fallback_base_url: str = Field("", description="its endpoint; empty is the first one's, with its key")
    model_fallback_api_key: SecretStr = Field(SecretStr(""), description="the key of that endpoint")
    model_fallback_api_key_file: Path | None = Field(None, description="file with that key instead")
    model_allow_plaintext: bool = Field(
        default=False, description="send a key over http to another machine, on a network that is private already"
    )

    model_input_price: float = Field(0.0, ge=0, le=1e6, description="money for a million tokens the model reads")
    model_output_price: float = Field(0.0, ge=0, le=1e6, description="money for a million tokens it writes")
    model_fallback_input_price: float | None = Field(None, ge=0, le=1e6, description="none is the first model's price")
    model_fallback_output_price: float | None = Field(None, ge=0, le=1e6, description="none is the first model's price")
    model_run_calls: int = Field(8, ge=1, le=1_000, description="how often one run may ask")
    model_run_tokens: int = Field(200_000, ge=1, description="tokens one run may use, read and written")
    model_run_cost: float = Field(0.0, ge=0, le=1e6, description="money one run may cost; 0 sets no limit")

    model_reply_tokens: int = Field(4_096, ge=1, le=1_000_000, description="tokens of one reply")
    model_reply_tokens_field: Literal["max_tokens", "max_completion_tokens", "none"] = Field(
        "max_tokens", description="what the endpoint calls that limit; none does not send it"
    )
    model_reply_bytes: int = Field(2 * _MIB, ge=1_024, le=64 * _MIB, description="bytes an endpoint may answer with")
    model_temperature: float | None = Field(None, ge=0, le=2, description="none leaves it to the endpoint")
    model_stream: bool = Field(default=True, description="ask for replies as they are written")
    model_stream_usage: bool = Field(
        default=True, description="ask how many tokens a streamed reply took; off where the endpoint refuses that"
    )

    vision_model: str = Field(
        "", max_length=256, description="model at model_base_url that reads images people send; empty reads none"
    )
    transcription_model: str = Field(
        "", max_length=256, description="model at model_base_url that writes down audio people send; empty hears none"
    )
    media_seconds: float = Field(30.0, gt=0, le=55, description="bound of reading one image or audio")

    interpreter: Literal["on", "off"] = Field(
        "on", description="ask the model what a person's words ask for, for RiskGate to check; off leaves it to rules"
    )
    interpreter_seconds: float = Field(5.0, gt=0, le=120, description="how long a turn waits for that")

    model_connect_seconds: float = Field(5.0, gt=0, le=120, description="bound of connecting")
    model_first_token_seconds: float = Field(60.0, gt=0, le=600, description="bound until a reply begins")
    model_between_tokens_seconds: float = Field(30.0, gt=0, le=600, description="bound of a pause within a reply")
    model_reply_seconds: float = Field(120.0, gt=0, le=3_600, description="bound of one reply")
    model_total_seconds: float = Field(180.0, gt=0, le=7_200, description="bound of a call, every attempt counted")
    model_attempts: int = Field(3, ge=1, le=10, description="how often one endpoint is asked the same")
    model_backoff_seconds: float = Field(0.5, gt=0, le=60, description="pause before the second attempt; it doubles")
    model_retry_after_seconds: float = Field(
        20.0, ge=0, le=600, description="longest Retry-After that is waited for; a longer one goes to the fallback"
    )
    model_breaker_failures: int = Field(5, ge=1, le=1_000, description="failures in a row that close an endpoint off")
    model_breaker_seconds: float = Field(30.0, gt=0, le=3_600, description="how long, until one call may try it again")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the settings sources, highest precedence first."""
        own = super().settings_customise_sources(
            settings_cls, init_settings, env_settings, dotenv_settings, file_secret_settings
        )
        return (*own, _SharedNames(settings_cls))
