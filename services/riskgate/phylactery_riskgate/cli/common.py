"""What the commands share: exit codes, options, output for people and for machines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.settings import explain
from phylactery_chassis.util.messages import read_messages
from pydantic import ValidationError

from phylactery_riskgate.keys.ring import KeyRing, KeysError, load_keys
from phylactery_riskgate.settings import RiskGateSettings

FAILED, UNUSABLE, UNPROVEN = 1, 2, 3
"""Exit codes: the check found something; it could not be carried out; nothing was found, and nothing proved."""

NO_DATABASE = "no database there; start RiskGate once, or pass its data folder with --data-dir"

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="RiskGate's data folder (RISKGATE_DATA_DIR)")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON object instead of text")]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def settings_of(**options: Any) -> RiskGateSettings:
    """Return the settings, options before the environment. End the command where they cannot be used."""
    try:
        return RiskGateSettings(**given(**options))
    except ValidationError as error:
        raise unusable(explain(error, "RISKGATE_")) from None


def has_database(settings: RiskGateSettings) -> bool:
    """Return True if the settings lead to a database; before the first start there is none in a data folder."""
    return bool(settings.database_url) or _database_file(settings).exists()


def _database_file(settings: RiskGateSettings) -> Path:
    return settings.data_dir / f"{settings.service}.db"


@contextmanager
def open_database(settings: RiskGateSettings) -> Iterator[Database]:
    """Open the service's database. End the command where there is none, or where it cannot be used."""
    if not has_database(settings):
        raise unusable(f"{_database_file(settings)}: {NO_DATABASE}")
    database = Database(settings.url)
    try:
        if database.dialect.is_server:  # a file says itself why it cannot be used; a server may be down, or empty
            database.migrate("phylactery_riskgate", apply=False, wait_seconds=0)
        yield database
    except StartError as error:
        raise unusable(str(error)) from None
    except DomainError as error:
        raise unusable(error.message) from None
    finally:
        database.close()


def keys_of(settings: RiskGateSettings) -> KeyRing:
    """Load the service's keys. End the command where there are none, or where they cannot be used."""
    if not settings.keys_dir.exists():
        raise unusable(f"{settings.keys_dir}: no keys found; pass RiskGate's data folder with --data-dir")
    try:
        return load_keys(settings.keys_dir, settings.signing_key_file, known=has_database(settings))
    except KeysError as error:
        raise unusable(str(error)) from None


def tell(as_json: bool, facts: dict[str, Any], text: str) -> None:
    """Print one answer."""
    typer.echo(json.dumps(facts, ensure_ascii=False, sort_keys=True) if as_json else printable(text))


def unusable(message: str) -> typer.Exit:
    """Report why the command failed, and return the exception to raise."""
    warn(message)
    return typer.Exit(UNUSABLE)


def warn(message: str) -> None:
    """Print a warning to standard error."""
    typer.echo(f"riskgate: {printable(message)}", err=True)


def printable(text: str) -> str:
    """Write what would speak to the terminal, or turn lines around, as an escape: a bundle may be anybody's."""
    return "".join(char if char.isprintable() or char == "\n" else f"\\u{ord(char):04x}" for char in text)


Language: TypeAlias = Literal["es", "en"]

_VARIABLES = ("RISKGATE_LANG", "LC_ALL", "LC_MESSAGES", "LANG")


def preferred_language() -> Language:
    """Return 'es' or 'en'."""
    said = next((value for name in _VARIABLES if (value := os.environ.get(name, ""))), "")
    return "es" if said.lower().startswith("es") else "en"


class Texts:
    """The texts of one command in one language."""

    def __init__(self, command: str, language: Language | None = None) -> None:
        """Take the word before its messages' ids; without a language it is the preferred one."""
        self.language = language or preferred_language()
        self._command, self._messages = command, read_messages("phylactery_riskgate.i18n", self.language)

    def __call__(self, key: str, **values: object) -> str:
        """Return a text with its values filled in."""
        return self._messages(f"{self._command}_{key}", **values)
