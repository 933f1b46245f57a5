"""How a proxy is started: the server it guards, the client it serves, and RiskGate."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,19}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,100}")
_OURS: Final = re.compile(r"(?:AGENT|RISKGATE|MEMORY|PHYLACTERY)_")
_INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")
_MAX_SECRET_BYTES: Final = 16 * 1024


class ConfigError(ValueError):
    """Error for options that cannot be used; the message names the option and never a value that may be secret."""


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """The guarded server: a command with stdio transport, or a URL, and the limits of its calls."""

    name: str
    command: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    env: tuple[str, ...] = ()
    """Names of this process's variables that the server gets besides PATH, HOME and the locale."""
    header_files: Mapping[str, Path] = field(default_factory=dict)
    plain_http: bool = False
    start_seconds: float = 20.0
    call_seconds: float = 120.0
    refresh_seconds: float = 60.0
    max_result_chars: int = 200_000

    def __post_init__(self) -> None:
        """Raise ConfigError."""
        if not _NAME.fullmatch(self.name):
            raise ConfigError("--name takes a lower-case letter and up to 19 more lower-case letters and digits")
        if bool(self.command) == bool(self.url):
            raise ConfigError("name the server by its command after --, or by --url")
        if self.url:
            self._check_url()
        elif self.header_files or self.plain_http:
            raise ConfigError("--header-file and --plain-http go with --url")
        for name in self.env:
            if not _VARIABLE.fullmatch(name) or _OURS.match(name):
                raise ConfigError(f"--env {name!r:.120}: not a variable's name, or one of Phylactery's own settings")
        if self.url and self.env:
            raise ConfigError("--env goes with a command")
        for name in self.header_files:
            if not _HEADER.fullmatch(name):
                raise ConfigError("--header-file takes NAME=FILE; a name is letters, digits and -")

    def _check_url(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ConfigError("--url is http:// or https:// with a host, and without a user or password in it")
        if parts.scheme == "http" and not self.plain_http and not is_this_machine(parts.hostname):
            raise ConfigError("--url is http:// to another machine: use https://, or add --plain-http")

    @property
    def identity(self) -> str:
        """Return what pins are tied to: a hash of the command or URL, which may themselves hold secrets."""
        said = {"command": list(self.command)} if self.command else {"url": self.url}
        return "sha256:" + hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def environment(self) -> dict[str, str]:
        """Return the server's environment, with nothing else of this process's."""
        return {name: os.environ[name] for name in (*_INHERITED, *self.env) if name in os.environ}

    def headers(self) -> dict[str, str]:
        """Return the headers for the URL, read again on each connection. Raise ConfigError."""
        return {name: read_secret(path, "--header-file") for name, path in self.header_files.items()}


@dataclass(frozen=True, slots=True)
class GateTarget:
    """RiskGate, and for whom the proxy calls it. Without a token RiskGate takes the caller for 'local'."""

    target: str
    token: str = field(default="", repr=False)
    subject: str = ""
    thread_id: str = ""


def read_secret(path: Path, option: str) -> str:
    """Return a file's only line. Raise ConfigError, without its content."""
    from phylactery_client.secret_files import read_secret_file  # late: it brings gRPC

    try:
        data = read_secret_file(path, _MAX_SECRET_BYTES)
        text = data.decode().strip()
    except OSError as error:
        raise ConfigError(f"{option}: {path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{option}: {path} is not UTF-8 text") from None
    if len(data) > _MAX_SECRET_BYTES or not text.isprintable():
        raise ConfigError(f"{option}: {path} holds more than one line, invisible characters, or too much")
    return text


def is_this_machine(host: str) -> bool:
    """Return True for a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
