"""Configuration of MCP servers: how each is reached, and the contract of its tools.

Nothing here connects to a server. A server's statements about its own tools are claims: risk, effect and idempotency
come from the configuration, and a server's annotation can only make them worse.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from phylactery_chassis.settings import is_loopback
from phylactery_chassis.util.crypto import ExposedKeyError, read_secret_file
from phylactery_understanding.documents import YamlFault, read_yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from phylactery_agent.tools.contract import Effect, Risk
from phylactery_agent.tools.mcp.pins import Pins

SERVER_NAME: Final = r"^[a-z][a-z0-9]{0,19}$"
MAX_CONFIG_BYTES: Final = 1024 * 1024
_VARIABLE: Final = r"^[A-Za-z_][A-Za-z0-9_]{0,99}$"
_HEADER: Final = r"^[A-Za-z0-9-]{1,100}$"
_OURS: Final = re.compile(r"^(AGENT|RISKGATE|MEMORY|PHYLACTERY)_")

McpIdempotency = Literal["read_only", "idempotent_by_key", "unsafe"]
Variable = Annotated[str, StringConstraints(pattern=_VARIABLE)]
Pointer = Annotated[str, StringConstraints(pattern=r"^/", max_length=400)]
Seconds = Annotated[float, Field(gt=0, le=3_600)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=1_000)]
Words = dict[Literal["es", "en"], list[Sentence]]


class McpConfigError(ValueError):
    """Error for an unusable configuration; the message names file, place and fault, never a possibly secret value."""


class ServerFaultError(Exception):
    """Error for a server that cannot be used; the message is built in and contains nothing the server said."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ExampleConfig(_Strict):
    """An example utterance in static mode, and the arguments it means."""

    text: Sentence
    args: dict[str, Any] = {}


class ToolConfig(_Strict):
    """Settings of one tool that differ from its server's defaults."""

    risk: Risk | None = None
    effect: Effect | None = None
    idempotency: McpIdempotency | None = None
    timeout_seconds: Seconds | None = None
    retries: Annotated[int, Field(ge=0, le=5)] = 0
    controls: list[Pointer] = []
    description: dict[Literal["es", "en"], Sentence] = {}
    verbs: list[Sentence] = []
    """RE2 alternatives that open a clause for this tool, for requests with several clauses."""
    patterns: Words = {}
    """RE2 expressions over a whole clause; named groups are arguments."""
    examples: dict[Literal["es", "en"], list[ExampleConfig]] = {}


class ServerConfig(_Strict):
    """One server: a command with stdio transport, or a URL, and the defaults of its tools."""

    command: list[Annotated[str, StringConstraints(min_length=1)]] = []
    cwd: Path | None = None
    env: list[Variable] = []
    """Names of the agent's environment variables passed to the server; otherwise only PATH, HOME and similar are."""
    env_files: dict[Variable, Path] = {}
    """Variables whose values are read from files."""
    stderr: Path | None = None
    """File to append its standard error to; without one it is discarded, because it can contain secrets."""
    url: str = ""
    header_files: dict[Annotated[str, StringConstraints(pattern=_HEADER)], Path] = {}
    plain_http: bool = False
    """Whether a URL may be http:// although its host is not this machine."""
    start_seconds: Seconds = 20.0
    refresh_seconds: Seconds = 60.0
    """How often its list of tools is read again, in addition to each change notification."""
    max_concurrent: Annotated[int, Field(ge=1, le=100)] = 4
    max_result_chars: Annotated[int, Field(ge=1_000, le=4_000_000)] = 200_000
    risk: Risk = "high"
    effect: Effect = "write"
    idempotency: McpIdempotency = "unsafe"
    timeout_seconds: Seconds = 30.0
    only: list[str] | None = None
    """The server's names of the tools that are used; without it, all pinned tools."""
    tools: dict[str, ToolConfig] = {}
    """Tool settings by the server's own names."""

    @model_validator(mode="after")
    def _one_way(self) -> ServerConfig:
        if bool(self.command) == bool(self.url):
            raise ValueError("a server has either a command or a url")
        if self.url:
            self._check_url()
            if self.cwd or self.env or self.env_files or self.stderr:
                raise ValueError("cwd, env, env_files and stderr are for a command, and this server has a url")
        elif self.header_files or self.plain_http:
            raise ValueError("header_files and plain_http are for a url, and this server has a command")
        for name in (*self.env, *self.env_files):
            if _OURS.match(name):
                raise ValueError(f"{name} is a setting of Phylactery's own and is given to no server")
        return self

    def _check_url(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ValueError("url is http:// or https:// with a host, and without a user or password in it")
        if parts.scheme == "http" and not self.plain_http and not is_loopback(parts.hostname):
            raise ValueError("url is http:// to another machine: use https://, or say plain_http: true")

    def of(self, tool: str) -> ToolConfig:
        """Return the configuration of one tool, by the server's own name."""
        return self.tools.get(tool, ToolConfig())

    def takes(self, tool: str) -> bool:
        """Return True if a tool is used at all."""
        return self.only is None or tool in self.only

    def environment(self) -> dict[str, str]:
        """Return the process's environment, with nothing else of the agent's. Raise McpConfigError."""
        given = {name: os.environ[name] for name in (*_PLAIN, *self.env) if name in os.environ}
        return given | {name: _secret(path) for name, path in self.env_files.items()}

    def headers(self) -> dict[str, str]:
        """Return the headers for its URL, read again on each call. Raise McpConfigError."""
        return {name: _secret(path) for name, path in self.header_files.items()}


_PLAIN: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")


class McpConfig(_Strict):
    """All servers by name."""

    servers: dict[Annotated[str, StringConstraints(pattern=SERVER_NAME)], ServerConfig] = Field(max_length=50)


@dataclass(frozen=True, slots=True)
class McpTools:
    """The servers of an agent and the pins of their tools."""

    config: McpConfig
    pins: Pins


def load_config(value: str) -> McpConfig:
    """Read AGENT_MCP_SERVERS: inline JSON, or the path of a YAML file; empty means no servers.

    Raises:
        McpConfigError: The configuration cannot be read or used.
    """
    if not value.strip():
        return McpConfig(servers={})
    if value.lstrip().startswith("{"):
        return _parsed("the JSON", _json(value))
    path = Path(value)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise McpConfigError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise McpConfigError(f"{path} is not UTF-8 text") from None
    return _parsed(str(path), _yaml(path, text))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise McpConfigError("it begins as JSON and is none") from None


def _yaml(path: Path, text: str) -> Any:
    if len(text) > MAX_CONFIG_BYTES:
        raise McpConfigError(f"{path} is longer than {MAX_CONFIG_BYTES} bytes")
    try:
        return read_yaml(text)
    except YamlFault as fault:
        raise McpConfigError(f"{path}{f':{fault.line}' if fault.line else ''} is not YAML we read") from None


def _parsed(where: str, value: Any) -> McpConfig:
    try:
        return McpConfig.model_validate(value if isinstance(value, Mapping) else {"servers": value})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise McpConfigError(f"{where}: {place or 'it'}: {first['msg'].removeprefix('Value error, ')}") from None


def _secret(path: Path) -> str:
    try:
        text = read_secret_file(path).decode().strip()
    except ExposedKeyError as error:
        raise McpConfigError(str(error)) from None
    except OSError as error:
        raise McpConfigError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise McpConfigError(f"{path} is not UTF-8 text") from None
    if not text.isprintable():
        raise McpConfigError(f"{path} holds more than one line, or invisible characters")
    return text
