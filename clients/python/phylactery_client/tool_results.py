"""What the agent says of its tools. Fields mean what the contract's fields of the same name mean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; disabled_reason is a word such as SCHEMA_DIFFERS, UNSPECIFIED where it is enabled."""

    name: str
    description: str
    description_es: str
    schema_hash: str
    version: str
    risk: str
    effect: str
    idempotency: str
    timeout: timedelta
    retries: int
    control_arguments: tuple[str, ...]
    source: str
    enabled: bool
    disabled_reason: str
    checked: bool


@dataclass(frozen=True, slots=True)
class ToolList:
    """Every tool, by name, and the catalog they were held against; check_time is None where that never was."""

    tools: tuple[Tool, ...]
    catalog_revision: int
    check_time: datetime | None
