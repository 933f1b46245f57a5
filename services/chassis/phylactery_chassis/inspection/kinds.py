"""What inspection can find, and how it says so: never with the found value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Category(StrEnum):
    """The two reasons for which text is kept back."""

    SECRET = "secret"  # noqa: S105 - the category's name
    PERSONAL = "personal"


class Confidence(IntEnum):
    """How sure a finding is: looks like it, is most likely, cannot well be anything else."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3


class FindingKind(StrEnum):
    """Every kind, the most specific first: of two that are equally sure about one place, the earlier wins."""

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
        """Return why it is kept back."""
        return Category.PERSONAL if self in _PERSONAL else Category.SECRET

    @property
    def placeholder(self) -> str:
        """Return what stands in redacted text in its place."""
        return f"«{self}»"


_PERSONAL = frozenset(list(FindingKind)[list(FindingKind).index(FindingKind.IBAN) :])

RANK = {kind: rank for rank, kind in enumerate(FindingKind)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: where, in Unicode code points of the text, and by which rule. It does not hold what was found."""

    kind: FindingKind
    start: int
    end: int
    confidence: Confidence
    rule: str
