"""Settings of the gateway, from GATEWAY_… variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from phylactery_chassis.settings import FollowedSecret, ServiceSettings, is_loopback
from pydantic import Field, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from phylactery_gateway.channels.port import SECOND_US

_NUMBER_ID = r"^[0-9]{1,32}$"
_TARGET = r"^[^\s/@]+:[0-9]{1,5}$"
_API = r"^https?://[^\s@?#]+$"
_ORIGIN = r"^https?://[^\s/?#@*,]+$"


class GatewaySettings(ServiceSettings):
    """The settings of the gateway."""

    model_config = SettingsConfigDict(env_prefix="GATEWAY_")
    service: ClassVar[str] = "gateway"

    data_dir: Path = Field(Path(".phylactery/gateway"), description="data folder of this service")
    port: int = Field(8_080, ge=0, le=65_535, description="public HTTP port; 0 takes a free one")
    agent_target: str = Field("127.0.0.1:50051", description="address of the agent")
    agent_token_file: Path | None = Field(
        None, description="file with the token for the agent, of an identity with role delegate"
    )
    language: Literal["es", "en"] = Field(
        "es", description="language of what the gateway itself says, where the channel does not tell the person's"
    )
    max_body_bytes: int = Field(3 * 1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="largest webhook")
    max_held_bytes: int = Field(
        16 * 1024 * 1024,
        ge=1024,
        description="bytes held of all bodies together that arrive over HTTP; where they are used up, the one that "
        "waits longest for its next part is given up",
    )
    max_connections: int = Field(
        2_048,
        ge=8,
        description="HTTP connections at once; where all are taken, the one that waits longest without a whole request "
        "gives its place to a new one",
    )
    head_seconds: float = Field(10.0, gt=0, le=300, description="how long the head of an HTTP request may take")
    body_seconds: float = Field(30.0, gt=0, le=3_600, description="how long the body of an HTTP request may take")
    debounce_seconds: float = Field(
        1.0, ge=0, le=30, description="pause after a message before the agent gets it with those before it"
    )
    human_seconds: float = Field(
        3_600.0, ge=0, description="how long the agent is silent after somebody of the business answered by hand"
    )
    max_watches: int = Field(200, ge=1, description="threads watched at once; the agent limits streams of a caller")
    watch_seconds: float = Field(
        120.0, gt=0, description="how long a thread is watched after its last event; later it is looked at"
    )
    look_seconds: float = Field(
        30.0, gt=0, description="how often a thread that is not watched is looked at, for example for a reminder"
    )
    retention_days: int = Field(
        30,
        ge=9,
        le=3_650,
        description="how long it is kept which messages came and went, without their texts; replays older than 8 days "
        "are ignored",
    )
    seal_key_file: Path | None = Field(
        None,
        description="file with the key of the stored texts, 32 random bytes, which all gateways over one database "
        "share; without one it is seal.key in data_dir, made at the first start",
    )
    whatsapp_app_secret_file: Path | None = Field(
        None, description="file with the app secret that signs WhatsApp's webhooks; without one there is no WhatsApp"
    )
    whatsapp_verify_token_file: Path | None = Field(
        None, description="file with the token of the webhook's first verification, chosen by you"
    )
    whatsapp_token_file: Path | None = Field(None, description="file with the access token for the Graph API")
    whatsapp_numbers: list[Annotated[str, Field(pattern=_NUMBER_ID)]] = Field(
        [], description='ids of the business\'s phone numbers, ["1122334455667"]; messages to others are only kept'
    )
    whatsapp_api_url: str = Field(
        "https://graph.facebook.com/v26.0",
        pattern=_API,
        description="Graph API, with its version; https, as it carries the token, unless it is on this machine",
    )
    whatsapp_media_hosts: list[str] = Field(
        ["lookaside.fbsbx.com"], description="hosts from which people's files are fetched"
    )
    whatsapp_template: str = Field(
        "",
        max_length=512,
        description="approved template, without parameters, that asks a person to write once the 24-hour window is "
        "closed; empty waits until they do",
    )
    whatsapp_template_languages: list[str] = Field(
        ["es", "en"], description="languages of the template as Meta names them, the usual one first", min_length=1
    )
    whatsapp_pair_seconds: float = Field(6.0, gt=0, description="time between two messages to one person")
    whatsapp_pair_burst: int = Field(10, ge=1, le=45, description="messages that may go to one person at once")
    whatsapp_number_rate: float = Field(
        80.0, gt=0, le=1_000, description="messages a second of a number, in and out together; 20 for coexistence"
    )
    telegram_token_file: Path | None = Field(
        None, description="file with the bot's token; without one there is no Telegram"
    )
    telegram_secret_file: Path | None = Field(None, description="file with the secret token of the bot's webhook")
    telegram_api_url: str = Field(
        "https://api.telegram.org",
        pattern=_API,
        description="address of the Bot API; https, as it carries the token, unless it is on this machine",
    )
    rpc_services: dict[str, Annotated[str, Field(pattern=_TARGET)]] = Field(
        {},
        description="services offered over HTTP, each with its address: "
        '{"phylactery.agent.v1.ChatService": "127.0.0.1:50051"}; empty offers none',
    )
    rpc_origins: list[Annotated[str, Field(pattern=_ORIGIN)]] = Field(
        [], description='origins of pages in browsers that may call services, ["https://console.example"]'
    )
    rpc_seconds: float = Field(
        300.0, gt=0, le=3_600, description="longest call of a service over HTTP; a caller may ask for less"
    )
    public_url: str = Field(
        "",
        pattern=r"^(https?://[^\s/?#@]+)?$",
        description="URL under which the gateway is reached, for AuthZEN's metadata and the OpenAPI document; empty is "
        "the address it listens on",
    )
    lease_seconds: float = Field(
        60.0, gt=0, le=600, description="after this time a process that was at work on a message is taken for dead"
    )
    api_seconds: float = Field(20.0, gt=0, le=50, description="bound of one call to a channel")

    @model_validator(mode="after")
    def _safe(self) -> Self:
        """Check the public port: it carries signed bodies, and TLS ends before it."""
        if not self.on_loopback and not self.allow_plaintext:
            raise ValueError(
                f"GATEWAY_HOST {self.host} would carry messages in plain text: put TLS before it and listen on "
                "127.0.0.1, or set GATEWAY_ALLOW_PLAINTEXT where the network is private"
            )
        return self

    @field_validator("whatsapp_api_url", "telegram_api_url")
    @classmethod
    def _carries_no_token_in_plain_text(cls, value: str) -> str:
        """Check where the token of a channel goes: it is in every call."""
        try:
            parts = urlsplit(value)
            usable = bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("is not the URL of a host; write it as https://graph.facebook.com/v26.0")
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ValueError("would carry the token and messages in plain text; use https, or an address of 127.0.0.1")
        return value

    @model_validator(mode="after")
    def _leases_outlast_calls(self) -> Self:
        """Check that no message is taken for lost while it is being sent: a call has phases, each with its timeout."""
        if self.lease_seconds < 2 * self.api_seconds:
            raise ValueError("GATEWAY_LEASE_SECONDS must be at least twice GATEWAY_API_SECONDS")
        return self

    @model_validator(mode="after")
    def _channels_are_whole(self) -> Self:
        whatsapp = {
            "GATEWAY_WHATSAPP_APP_SECRET_FILE": self.whatsapp_app_secret_file,
            "GATEWAY_WHATSAPP_VERIFY_TOKEN_FILE": self.whatsapp_verify_token_file,
            "GATEWAY_WHATSAPP_TOKEN_FILE": self.whatsapp_token_file,
            "GATEWAY_WHATSAPP_NUMBERS": self.whatsapp_numbers,
        }
        telegram = {
            "GATEWAY_TELEGRAM_TOKEN_FILE": self.telegram_token_file,
            "GATEWAY_TELEGRAM_SECRET_FILE": self.telegram_secret_file,
        }
        for title, group in (("WhatsApp", whatsapp), ("Telegram", telegram)):
            missing = [name for name, value in group.items() if not value]
            if missing and len(missing) < len(group):
                raise ValueError(f"{title} needs {' and '.join(missing)} too")
        if not self.whatsapp_on and not self.telegram_on and not self.rpc_services:
            raise ValueError(
                "no channel is configured: without an app secret no webhook can be trusted; "
                f"set {', '.join(whatsapp)}, or {', '.join(telegram)}, or GATEWAY_RPC_SERVICES"
            )
        return self

    @model_validator(mode="after")
    def _callers_have_identities(self) -> Self:
        """Check that nobody from elsewhere calls a service as somebody of this machine."""
        if self.identity_mode == "tokens" and self.tokens_file is None:
            raise ValueError("GATEWAY_IDENTITY_MODE is 'tokens': name the file of tokens in GATEWAY_TOKENS_FILE")
        if not self.rpc_services or self.identity_mode == "tokens":
            return self
        public = "listens beyond this machine" if not self.on_loopback else ""
        if self.whatsapp_on or self.telegram_on:
            public = "receives webhooks from the internet"
        if public or self.public_url:
            raise ValueError(
                f"GATEWAY_RPC_SERVICES would serve everybody who reaches a port that {public or 'has a public URL'}: "
                "set GATEWAY_IDENTITY_MODE to tokens"
            )
        return self

    @property
    def whatsapp_on(self) -> bool:
        """True if WhatsApp is configured."""
        return self.whatsapp_app_secret_file is not None

    @property
    def telegram_on(self) -> bool:
        """True if Telegram is configured."""
        return self.telegram_token_file is not None

    def secret(self, field: str) -> Callable[[], str]:
        """Return what returns the secret in a field's file, which is followed. Raise ValueError if it is empty."""
        variable = f"GATEWAY_{field.upper()}"
        followed = FollowedSecret(getattr(self, field), variable)
        if not followed():
            raise ValueError(f"{variable}: the file is empty; write the secret into it")
        return followed

    def agent_token(self) -> Callable[[], str]:
        """Return what returns the agent's token, '' if none is configured. Raise ValueError."""
        return FollowedSecret(self.agent_token_file, "GATEWAY_AGENT_TOKEN_FILE")

    @property
    def debounce_us(self) -> int:
        """The debounce time in microseconds."""
        return int(self.debounce_seconds * SECOND_US)
