"""Settings of a service from environment variables with its prefix; secrets come from files."""

from __future__ import annotations

import contextlib
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from phylactery_chassis.errors import StartError
from phylactery_chassis.util.crypto import ExposedKeyError, make_folder_private, read_secret_file

_MIB = 1024 * 1024

Settings = TypeVar("Settings", bound="ServiceSettings")


class ServiceSettings(BaseSettings):
    """Settings common to all services. A subclass adds its own and sets env_prefix and service."""

    # The value of a variable may be a secret, so no error repeats it. Subclasses inherit this.
    model_config = SettingsConfigDict(hide_input_in_errors=True)
    service: ClassVar[str] = "service"

    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(0, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    admin_port: int | None = Field(
        None, ge=0, le=65_535, description="loopback port for channelz and health; 0 takes a free one, none serves none"
    )
    data_dir: Path = Field(Path(".phylactery"), description="folder for database, keys and spans")
    database_url: str = Field("", description="SQLAlchemy URL; empty is SQLite in data_dir")
    database_password_file: Path | None = Field(
        None, description="file with the password of database_url, instead of putting it into the URL"
    )
    identity_mode: Literal["none", "tokens"] = Field("none", description="who may call: loopback only, or tokens")
    tokens_file: Path | None = Field(
        None, description="YAML file of hashed tokens, for identity_mode tokens; writable by its owner alone"
    )
    allow_plaintext: bool = Field(
        default=False, description="listen beyond loopback without TLS, on a network that is private already"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="port where Prometheus reads metrics; 0 takes a free one, none serves none; each worker of several "
        "has the next one",
    )
    metrics_host: str = Field("127.0.0.1", description="address to serve metrics on, to anybody who reaches it")
    otlp_endpoint: str = Field("", description="OTLP gRPC endpoint for traces and metrics; empty sends none")
    share_port: bool = Field(default=False, description="bind a port that a supervisor has reserved for its workers")
    ready_file: Path | None = Field(None, description="file to write {service, pid, port} to once it serves")
    drain_seconds: float = Field(5.0, ge=0, le=300, description="how long running calls may finish at a stop")
    max_message_bytes: int = Field(4 * _MIB, ge=1024, le=64 * _MIB, description="largest request message")
    max_concurrent_rpcs: int = Field(1_000, ge=1, description="concurrent unary calls; more are RESOURCE_EXHAUSTED")
    max_concurrent_rpcs_per_caller: int = Field(500, ge=1, description="the same, of one caller")
    max_streams_per_connection: int = Field(
        512, ge=16, le=100_000, description="open calls of one connection; its client makes more wait"
    )
    max_streams: int = Field(1_000, ge=1, description="concurrent streams of each kind, in addition to those calls")
    max_streams_per_caller: int = Field(200, ge=1, description="the same, of one caller")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - no file of variables or secrets is read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the settings sources, highest precedence first.

        Every field is looked for in each of them, several milliseconds apiece, so one that has nothing is left out.
        """
        prefix = settings_cls.model_config.get("env_prefix", "").lower()
        is_set = any(name.lower().startswith(prefix) for name in os.environ)
        return (init_settings, env_settings) if is_set else (init_settings,)

    @field_validator("database_url")
    @classmethod
    def _usable_database_url(cls, value: str) -> str:
        """Reject a URL that no installed driver serves. The error shows no part of it, which may hold a password."""
        if value:
            import sqlalchemy as sa  # late: a command that only needs a token has no database

            from phylactery_chassis.db.dialect import dialect_named

            try:
                url = sa.make_url(value)
                url.get_dialect().import_dbapi()
                dialect_named(url.get_backend_name())
            except (sa.exc.ArgumentError, ImportError, KeyError, ValueError) as error:
                missing = f" ({error})" if isinstance(error, ModuleNotFoundError) else ""
                raise ValueError(
                    "is not a URL of a supported database"
                    f"{missing}; write sqlite:////folder/file.db, or postgresql+psycopg://user@host/name with the "
                    "extra 'postgres' installed"
                ) from None
        return value

    @model_validator(mode="after")
    def _safe(self) -> Self:
        prefix = self.model_config.get("env_prefix", "")
        if self.identity_mode == "tokens" and self.tokens_file is None:
            raise ValueError(f"{prefix}IDENTITY_MODE is 'tokens': name the file of tokens in {prefix}TOKENS_FILE")
        if not self.on_loopback and self.identity_mode == "none":
            raise ValueError(
                f"{prefix}HOST {self.host} is reachable from elsewhere and {prefix}IDENTITY_MODE is 'none': "
                "listen on 127.0.0.1, or set the mode to 'tokens'"
            )
        if not self.on_loopback and not self.allow_plaintext:
            raise ValueError(
                f"{prefix}HOST {self.host} would carry tokens in plain text: put TLS before it and listen on "
                f"127.0.0.1, or set {prefix}ALLOW_PLAINTEXT where the network is private"
            )
        if self.metrics_port is not None and not is_loopback(self.metrics_host) and not self.allow_plaintext:
            raise ValueError(
                f"{prefix}METRICS_HOST {self.metrics_host} would serve metrics to anybody, in plain text: listen on "
                f"127.0.0.1 and scrape there, or set {prefix}ALLOW_PLAINTEXT where the network is private"
            )
        return self

    @property
    def started_again(self) -> Mapping[str, str]:
        """Extra variables for a worker that is restarted."""
        return {}

    @property
    def on_loopback(self) -> bool:
        """True if only this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        """Return the database URL with the password from its file. Raise StartError if that cannot be read."""
        if not self.database_url:
            return f"sqlite:///{self.data_dir.resolve() / (self.service + '.db')}"
        if self.database_password_file is None:
            return self.database_url
        variable = f"{self.model_config.get('env_prefix', '')}DATABASE_PASSWORD_FILE"
        try:
            password = read_secret(self.database_password_file, variable)
        except ValueError as error:
            raise StartError(str(error)) from None
        import sqlalchemy as sa

        return sa.make_url(self.database_url).set(password=password).render_as_string(hide_password=False)

    def prepare(self) -> None:
        """Create the data folder, or take the rights of others at it away. Raise StartError if it cannot be written."""
        why = ""
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            make_folder_private(self.data_dir)
        except OSError as error:
            why = error.strerror or type(error).__name__
        if why or not os.access(self.data_dir, os.R_OK | os.W_OK | os.X_OK):
            raise StartError(
                f"{self.data_dir} cannot be the data folder ({why or 'Permission denied'}); "
                f"name one that can be written in {self.model_config.get('env_prefix', '')}DATA_DIR"
            )


def is_loopback(host: str) -> bool:
    """Return True for a host name or address that is this machine alone, whatever the network."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return bool((getattr(address, "ipv4_mapped", None) or address).is_loopback)


def explain(error: ValidationError, prefix: str) -> str:
    """Return the first problem of a settings error as a sentence that names the environment variable."""
    first = error.errors(include_input=False, include_url=False)[0]
    said = first["msg"].removeprefix("Value error, ")
    return f"{prefix}{'_'.join(str(part) for part in first['loc']).upper()}: {said}" if first["loc"] else said


def load(kind: type[Settings], **options: Any) -> Settings:
    """Return the settings from options and the environment. Raise StartError naming the invalid variable."""
    prefix = kind.model_config.get("env_prefix", "")
    try:
        return kind(**options)
    except ValidationError as error:
        raise StartError(explain(error, prefix)) from None
    except SettingsError as error:  # it names the field only in its text
        field = next((name for name in kind.model_fields if f'"{name}"' in str(error)), "")
        raise StartError(f"{prefix}{field.upper()}: is not JSON, which lists are written in") from None


def read_secret(path: Path | None, what: str) -> str:
    """Return a secret file's text without the final line break, '' for None.

    Raise ValueError, also if others may read the file.
    """
    if path is None:
        return ""
    try:
        return read_secret_file(path).decode().strip()
    except ExposedKeyError as error:
        raise ValueError(f"{what}: {error}") from None
    except OSError as error:
        raise ValueError(f"{what}: {path} cannot be read ({error.strerror}); name a file that can") from None
    except UnicodeDecodeError:
        raise ValueError(f"{what}: {path} is not UTF-8 text; name a file that is") from None


class FollowedSecret:
    """The text of a secret file, read again once the file has changed, so that a rotated secret needs no restart.

    A file that cannot be read, or is empty, leaves the secret read before in use.
    """

    def __init__(self, path: Path | None, what: str, otherwise: str = "") -> None:
        """Read the file; without one, or an empty one, the secret is ``otherwise``. Raise ValueError."""
        self._path, self._what = path, what
        self._stamp = self._look()
        self._text = read_secret(path, what) or otherwise

    def __call__(self) -> str:
        """Return the secret."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            with contextlib.suppress(ValueError):
                self._text = read_secret(self._path, self._what) or self._text
        return self._text

    def _look(self) -> tuple[int, ...]:
        if self._path is None:
            return ()
        try:
            seen = self._path.stat()
        except OSError:
            return ()
        return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns
