"""What http_get and send_email can be told, as AGENT_HTTP_… and AGENT_SMTP_… in the environment."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal

from phylactery_chassis.settings import ServiceSettings, read_secret
from pydantic import Field, SecretStr, field_validator, model_validator

from phylactery_agent.tools.outside import MailSettings, UrlError, WebSettings, address_of, read_allowed, read_url

_USUAL_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class OutsideSettings(ServiceSettings):
    """Settings of the tools that reach beyond this system; without them those are switched off."""

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
        """Refuses an entry that readers could disagree about. Raises ValueError."""
        read_allowed(value)
        return value

    @field_validator("http_ca_file", "smtp_ca_file")
    @classmethod
    def _readable_file(cls, value: Path | None) -> Path | None:
        """Refuses a file of certificates that is not there. Raises ValueError."""
        if value is not None and not value.is_file():
            raise ValueError(f"there is no file {value}")
        return value

    @model_validator(mode="after")
    def _whole_mail(self) -> OutsideSettings:
        """Refuses a mail server without a sender, and one that would be told secrets in the clear."""
        if not self.smtp_host:
            return self
        if not _is_host(self.smtp_host):
            raise ValueError("smtp_host is no name of a host and no address")
        local, at, domain = self.smtp_from.rpartition("@")
        if not (at and local and domain and self.smtp_from.isascii() and self.smtp_from.isprintable()) or (
            " " in self.smtp_from
        ):
            raise ValueError("smtp_host needs smtp_from, the address messages come from")
        if self.smtp_tls == "none" and not _is_loopback(self.smtp_host):
            raise ValueError("smtp_tls none is for a mail server on loopback alone; use starttls or tls")
        return self

    def web(self) -> WebSettings | None:
        """Answers what http_get may do, None where it is switched off."""
        if not self.http_allow:
            return None
        return WebSettings(read_allowed(self.http_allow), self.http_max_bytes, self.http_seconds, self.http_ca_file)

    def mail(self) -> MailSettings | None:
        """Answers the mail server, None where there is none. Raises ValueError where its password cannot be read."""
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
