"""Kinds of findings. A finding never contains the found value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Category(StrEnum):
    """The two reasons to withhold text."""

    SECRET = "secret"  # noqa: S105 - the category's name
    PERSONAL = "personal"


class Confidence(IntEnum):
    """The confidence of a finding: possible, likely, or near certain."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3


class FindingKind(StrEnum):
    """Every kind, the most specific first: of two equally confident findings at one place, the earlier kind wins."""

    PRIVATE_KEY = "private_key"
    JWT = "jwt"
    AWS_KEY = "aws_key"
    GITHUB_TOKEN = "github_token"  # noqa: S105 - the kind's name, as below
    GITLAB_TOKEN = "gitlab_token"  # noqa: S105
    SLACK_TOKEN = "slack_token"  # noqa: S105
    STRIPE_KEY = "stripe_key"
    ANTHROPIC_KEY = "anthropic_key"
    OPENAI_KEY = "openai_key"
    GOOGLE_KEY = "google_key"
    TWILIO_KEY = "twilio_key"
    SENDGRID_KEY = "sendgrid_key"
    NPM_TOKEN = "npm_token"  # noqa: S105
    PYPI_TOKEN = "pypi_token"  # noqa: S105
    AZURE_KEY = "azure_key"
    SERVICE_TOKEN = "service_token"  # noqa: S105
    URL_PASSWORD = "url_password"  # noqa: S105
    CONNECTION_PASSWORD = "connection_password"  # noqa: S105
    AUTHORIZATION = "authorization"
    PASSWORD = "password"  # noqa: S105
    TOKEN = "token"  # noqa: S105
    IBAN = "iban"
    CARD = "card"
    ES_NIE = "es_nie"
    ES_DNI = "es_dni"
    ES_CIF = "es_cif"
    US_SSN = "us_ssn"
    EMAIL = "email"
    PHONE = "phone"
    IP_ADDRESS = "ip_address"

    @property
    def category(self) -> Category:
        """The category of this kind."""
        return Category.PERSONAL if self in _PERSONAL else Category.SECRET

    @property
    def placeholder(self) -> str:
        """The text that replaces a finding in redacted text."""
        return f"«{self}»"


_PERSONAL = frozenset(list(FindingKind)[list(FindingKind).index(FindingKind.IBAN) :])

RANK = {kind: rank for rank, kind in enumerate(FindingKind)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its position in Unicode code points, and the rule. It does not hold the found value."""

    kind: FindingKind
    start: int
    end: int
    confidence: Confidence
    rule: str
