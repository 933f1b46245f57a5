"""Settings of the agent, read from AGENT_… environment variables."""

from __future__ import annotations

import ipaddress
from collections import Counter
from pathlib import Path
from typing import ClassVar, Literal

from phylactery_chassis.settings import FollowedSecret, ServiceSettings, read_secret
from phylactery_forms.values.contacts import REGIONS
from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from phylactery_agent.llm_client.settings import ModelSettings
from phylactery_agent.timeparse.recurrence import zone
from phylactery_agent.tools.named_folders import SharedFolder, is_named
from phylactery_agent.tools.network_policy import (
    MailSettings,
    UrlError,
    WebSettings,
    address_of,
    read_allowed,
    read_url,
)

_USUAL_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class OutsideSettings(ServiceSettings):
    """Settings of the tools that reach external systems; without them those tools are disabled."""

    http_allow: list[str] = Field(
        default_factory=list,
        description="JSON list of what http_get may read: [http://|https://]HOST[:PORT][=NETWORK,…], where *.DOMAIN is "
        "every host below one and a network names private addresses; empty switches it off",
    )
    http_max_bytes: int = Field(1024 * 1024, ge=1_024, le=16 * 1024 * 1024, description="largest body http_get takes")
    http_seconds: float = Field(15.0, gt=0, le=18, description="bound of one http_get, redirects included")
    http_ca_file: Path | None = Field(None, description="certificates http_get trusts instead of the usual ones")
    smtp_host: str = Field("", description="mail server of send_email; empty switches it off")
    smtp_port: int = Field(
        0, ge=0, le=65_535, description="its port; 0 is the usual one: 587, 465 with tls, 25 with none"
    )
    smtp_tls: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="how the connection is protected; none on loopback alone"
    )
    smtp_from: str = Field("", description="address messages come from; needed with smtp_host")
    smtp_user: str = Field("", description="user at the mail server; empty sends no password")
    smtp_password: SecretStr = Field(SecretStr(""), description="its password")
    smtp_password_file: Path | None = Field(None, description="file with that password instead")
    smtp_ca_file: Path | None = Field(
        None, description="certificates the mail server is trusted by, not the usual ones"
    )

    @field_validator("http_allow")
    @classmethod
    def _readable_list(cls, value: list[str]) -> list[str]:
        """Reject an entry that parsers could interpret differently. Raise ValueError."""
        read_allowed(value)
        return value

    @field_validator("http_ca_file", "smtp_ca_file")
    @classmethod
    def _readable_file(cls, value: Path | None) -> Path | None:
        """Reject a certificate file that does not exist. Raise ValueError."""
        if value is not None and not value.is_file():
            raise ValueError(f"there is no file {value}")
        return value

    @model_validator(mode="after")
    def _whole_mail(self) -> OutsideSettings:
        """Reject a mail server without a sender, and one that would receive secrets unencrypted."""
        if not self.smtp_host:
            return self
        if not _is_host(self.smtp_host):
            raise ValueError("smtp_host is neither a host name nor an address")
        local, at, domain = self.smtp_from.rpartition("@")
        if not (at and local and domain and self.smtp_from.isascii() and self.smtp_from.isprintable()) or (
            " " in self.smtp_from
        ):
            raise ValueError("smtp_host needs smtp_from, the address messages come from")
        if self.smtp_tls == "none" and not _is_loopback(self.smtp_host):
            raise ValueError("smtp_tls none is for a mail server on loopback alone; use starttls or tls")
        return self

    def web(self) -> WebSettings | None:
        """Return the settings of http_get, or None if it is disabled."""
        if not self.http_allow:
            return None
        return WebSettings(read_allowed(self.http_allow), self.http_max_bytes, self.http_seconds, self.http_ca_file)

    def mail(self) -> MailSettings | None:
        """Return the mail server, or None if there is none. Raise ValueError if its password cannot be read."""
        if not self.smtp_host:
            return None
        password = read_secret(self.smtp_password_file, "AGENT_SMTP_PASSWORD_FILE")
        return MailSettings(
            host=self.smtp_host,
            port=self.smtp_port or _USUAL_PORTS[self.smtp_tls],
            sender=self.smtp_from,
            tls=self.smtp_tls,
            user=self.smtp_user,
            password=password or self.smtp_password.get_secret_value(),
            ca_file=self.smtp_ca_file,
        )


def _is_host(text: str) -> bool:
    try:
        return address_of(text) is not None or read_url(f"https://{text}").host == text.lower()
    except UrlError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class AgentSettings(OutsideSettings, ModelSettings):
    """Settings of the agent."""

    model_config = SettingsConfigDict(env_prefix="AGENT_", extra="ignore")
    service: ClassVar[str] = "agent"

    data_dir: Path = Field(Path(".phylactery/agent"), description="folder for everything this service keeps")
    port: int = Field(50051, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    max_message_bytes: int = Field(
        20 * 1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="largest request message, attachments included"
    )
    riskgate_target: str = Field("127.0.0.1:50052", description="address of RiskGate")
    memory_target: str = Field("127.0.0.1:50053", description="address of the memory service")
    riskgate_token: SecretStr = Field(
        SecretStr(""), description="token for RiskGate, of an identity with role delegate"
    )
    riskgate_token_file: Path | None = Field(None, description="file with that token instead")
    memory_token: SecretStr = Field(SecretStr(""), description="token for memory, of an identity with role delegate")
    memory_token_file: Path | None = Field(None, description="file with that token instead")
    call_seconds: float = Field(10.0, gt=0, le=120, description="bound of one call to another service")
    erasure_log: Path | None = Field(
        None,
        description="file that says who was erased, read at every start; none is erasures.jsonl in data_dir. Keep it "
        "out of what a restore overwrites",
    )
    sandbox_dir: Path | None = Field(
        None, description="folder of people's files, one folder each; empty is <data_dir>/sandbox"
    )
    sandbox_shared: list[SharedFolder] = Field(
        default_factory=list,
        description='folders that everybody of a tenant sees as shared/NAME: a JSON list of {"tenant": …, "name": …, '
        '"path": …, "writable": false}; none are shared by default',
    )
    file_versions: int = Field(
        20, ge=1, le=1_000, description="earlier versions kept of one file a user changes; the newest can be undone"
    )
    file_version_bytes: int = Field(
        64 * 1024 * 1024, ge=2 * 1024 * 1024, description="bytes of earlier versions kept of all files of one user"
    )
    undo_days: int = Field(
        30,
        ge=1,
        le=365,
        description="days for which what was done can be undone; earlier versions of files go with them",
    )
    react_max_steps: int = Field(8, ge=1, le=25, description="how often reasoner or model may run in one react run")
    react_tool_rounds: int = Field(
        3, ge=1, le=8, description="how often a model may propose calls in one react run; several each time"
    )
    llm_fallback: bool = Field(
        default=False, description="react runs echo itself where the prompt asks and the model does not"
    )
    tool_modules: list[str] = Field(default_factory=list, description="JSON list of modules that add tools")
    mcp_servers: str = Field("", description="MCP servers: JSON in place, or the path of a YAML file (docs/mcp.md)")
    mcp_pins: Path | None = Field(
        None,
        description="file of the MCP tools agreed to, by phylactery tools pin; none is <data_dir>/mcp.json",
    )
    evict_over_chars: int = Field(10_000, ge=1_000, description="longer outputs go to memory, a pointer stays")
    time_zone: str = Field("UTC", description="IANA name of the zone times are meant in where a person names none")
    region: str = Field(
        "ES",
        description="country (ISO 3166) of telephone numbers, national ids and sums of money that name none",
    )
    reminders_per_user: int = Field(100, ge=1, le=1_000, description="active reminders one person may have")
    reminder_poll_seconds: float = Field(
        5.0, gt=0, le=60, description="the longest a reminder given to another replica is not looked at"
    )
    graph: str = Field("secured", description="graph that serves a new thread whose first message names none")
    forms_dir: Path | None = Field(
        None, description="folder of the forms people can fill in (docs/forms.md); none serves no forms"
    )
    event_days: int = Field(30, ge=0, le=36_500, description="days the events of a thread are kept; 0 for ever")
    repeat_days: int = Field(
        7,
        ge=1,
        le=3_650,
        description="days until the texts of ended runs are emptied; before that a repeated request gets its reply",
    )
    max_concurrent_turns: int = Field(16, ge=1, le=1_000, description="turns served at once")
    approval_poll_seconds: float = Field(
        1.0,
        ge=0,
        description="how often suspended runs are looked at, and asked about where RiskGate does not tell; 0 never",
    )
    catalog_poll_seconds: float = Field(
        5.0,
        ge=0,
        le=3_600,
        description="how often RiskGate is asked whether its catalog is another one; 0 at the start",
    )
    retry_seconds: float = Field(
        1.0, gt=0, le=60, description="first pause before an interrupted turn or delivery is retried; it grows"
    )
    guest_turns_per_day: int = Field(
        200, ge=0, description="messages a day that a person of a channel is answered; 0 is no limit"
    )
    guest_forms_per_day: int = Field(20, ge=0, description="forms a day that a person of a channel may begin")
    guest_escalations_per_day: int = Field(
        5, ge=0, description="how often a day a person of a channel may ask for a person"
    )
    guest_tokens_per_day: int = Field(500_000, ge=0, description="tokens of a model a day for a person of a channel")
    user_turns_per_day: int = Field(0, ge=0, description="messages a day that anybody else is answered; 0 is no limit")
    user_forms_per_day: int = Field(0, ge=0, description="forms a day that anybody else may begin")
    user_escalations_per_day: int = Field(0, ge=0, description="how often a day anybody else may ask for a person")
    user_tokens_per_day: int = Field(0, ge=0, description="tokens of a model a day for anybody else")
    active_seconds: float = Field(
        900.0, ge=1, le=86_400, description="how long one run may be served in all; while it waits no time passes"
    )
    change_seconds: int = Field(
        900,
        ge=0,
        le=3_600,
        description="how long after an answer a message may correct, repeat or take back its request; 0 never",
    )
    handoff: Literal["on", "off"] = Field(
        "off", description="whether people work the queue of escalations; off tells who asks that nobody is on duty"
    )
    handoff_claim_seconds: float = Field(
        300.0, ge=1, le=86_400, description="how long a person's claim lasts without a renewal or a reply"
    )
    handoff_wait_seconds: float = Field(
        86_400.0, ge=0, description="how long an escalation waits before it is closed and its person told; 0 for ever"
    )
    lease_seconds: float = Field(
        30.0, ge=2, le=600, description="how long an agent that stands still keeps its turns from other replicas"
    )

    @property
    def shared(self) -> bool:
        """Return True if other agents may serve the same database; over SQLite one process owns the folder."""
        return bool(self.database_url) and not self.database_url.startswith("sqlite")

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        """Reject a name that is not in the system's time zones. Raise ValueError."""
        zone(value)
        return value

    @field_validator("region")
    @classmethod
    def _known_region(cls, value: str) -> str:
        """Return the code in upper case. Raise ValueError for a country without telephone numbers."""
        region = value.strip().upper()
        if region not in REGIONS:
            raise ValueError(f"'{value}' is not an ISO 3166 code of a country, such as ES, MX or GB")
        return region

    @model_validator(mode="after")
    def _harmless_shared_folders(self) -> AgentSettings:
        """Reject a shared folder that is missing, doubled, or would show what the agent keeps. Raise ValueError."""
        data, sandbox = self.data_dir.resolve(), self.sandbox.resolve()
        names = Counter((one.tenant, one.name) for one in self.sandbox_shared)
        for one in self.sandbox_shared:
            path = one.path.resolve()
            if not one.path.is_absolute() or not path.is_dir():
                raise ValueError(f"sandbox_shared: {one.path} is no folder with an absolute path")
            if names[one.tenant, one.name] > 1:
                raise ValueError(f"sandbox_shared: '{one.name}' is there twice for tenant '{one.tenant}'")
            below = path.relative_to(sandbox).parts if path.is_relative_to(sandbox) else ()
            ours = path.is_relative_to(data) and not below
            if ours or any(kept.is_relative_to(path) for kept in (data, sandbox)) or any(map(is_named, below[:1])):
                raise ValueError(f"sandbox_shared: {one.path} holds what the agent keeps, or the files of one person")
        return self

    @property
    def sandbox(self) -> Path:
        """Return the folder of people's files."""
        return self.sandbox_dir or self.data_dir / "sandbox"

    @property
    def mcp_pin_file(self) -> Path:
        """Return the file of the pinned MCP tools."""
        return self.mcp_pins or self.data_dir / "mcp.json"

    def token_for_riskgate(self) -> FollowedSecret:
        """Return the token, from its file if one is named, which is followed. Raise ValueError."""
        return FollowedSecret(
            self.riskgate_token_file, "AGENT_RISKGATE_TOKEN_FILE", self.riskgate_token.get_secret_value()
        )

    def token_for_memory(self) -> FollowedSecret:
        """Return the token, from its file if one is named, which is followed. Raise ValueError."""
        return FollowedSecret(self.memory_token_file, "AGENT_MEMORY_TOKEN_FILE", self.memory_token.get_secret_value())
