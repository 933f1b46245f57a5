"""Settings of a service, from the environment: one prefix per service, secrets from files."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings

_MIB = 1024 * 1024


class ServiceSettings(BaseSettings):
    """What every service can be told. A subclass adds its own and sets env_prefix and service."""

    service: ClassVar[str] = "service"

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(0, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    data_dir: Path = Field(Path(".phylactery"), description="folder for database, keys and spans")
    database_url: str = Field("", description="SQLAlchemy URL; empty is SQLite in data_dir")
    identity_mode: Literal["none", "tokens"] = Field("none", description="who may call: loopback only, or tokens")
    tokens_file: Path | None = Field(None, description="YAML file of hashed tokens, for identity_mode tokens")
    allow_plaintext: bool = Field(
        default=False, description="listen beyond loopback without TLS, on a network that is private already"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    otlp_endpoint: str = Field("", description="OTLP gRPC endpoint for traces and metrics; empty sends none")
    ready_file: Path | None = Field(None, description="file to write {service, pid, port} to once it serves")
    drain_seconds: float = Field(5.0, ge=0, le=300, description="how long running calls may finish at a stop")
    max_message_bytes: int = Field(4 * _MIB, ge=1024, le=64 * _MIB, description="largest request message")
    max_concurrent_rpcs: int = Field(1_000, ge=1, description="calls served at once; more are RESOURCE_EXHAUSTED")

    @model_validator(mode="after")
    def _safe(self) -> Self:
        if self.identity_mode == "tokens" and self.tokens_file is None:
            raise ValueError("identity_mode 'tokens' needs tokens_file")
        if not self.on_loopback and self.identity_mode == "none":
            raise ValueError(
                f"host {self.host} is reachable from elsewhere and identity_mode is 'none': "
                "listen on 127.0.0.1, or set identity_mode to 'tokens'"
            )
        if not self.on_loopback and not self.allow_plaintext:
            raise ValueError(
                f"host {self.host} would carry tokens in plain text: put TLS before it and listen on 127.0.0.1, "
                "or set allow_plaintext where the network is private"
            )
        return self

    @property
    def on_loopback(self) -> bool:
        """Says whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """Answers the database URL."""
        return self.database_url or f"sqlite:///{self.data_dir.resolve() / (self.service + '.db')}"

    def prepare(self) -> None:
        """Creates the data folder, readable by its owner alone."""
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)


def explain(error: ValidationError, prefix: str) -> str:
    """Answers the first fault of a settings error as a sentence that names the environment variable."""
    first = error.errors(include_input=False, include_url=False)[0]
    variable = prefix + "_".join(str(part) for part in first["loc"]).upper() if first["loc"] else f"{prefix}*"
    return f"{variable}: {first['msg']}"


def read_secret(path: Path | None, what: str) -> str:
    """Answers the text of a secret's file without the final line break, empty for None. Raises ValueError."""
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ValueError(f"{what}: {path} cannot be read ({error.strerror})") from None
