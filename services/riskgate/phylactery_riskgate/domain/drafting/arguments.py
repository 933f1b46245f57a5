"""Guesses what the arguments of a tool are, from their names, types, formats and descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.argument_types import one_form
from phylactery_riskgate.domain.catalog import use_fault
from phylactery_riskgate.domain.catalog_facts import MAX_ROLES
from phylactery_riskgate.domain.drafting.vocabulary import THINGS, VERBS, singular, words_of
from phylactery_riskgate.domain.model import Effect, Role

MAX_DEPTH: Final = 8
"""Arguments nested deeper have the role of what holds them."""

_LEAFING: Final = frozenset(
    ("page", "next", "cursor", "continuation", "limit", "offset", "sort", "order", "max", "filter", "query", "search")
)
"""Words of arguments that say which part of a list is wanted."""
_LISTS: Final[dict[Role, str]] = {
    "secret": "password passwd passphrase secret token apikey credential pin otp",
    "url": "url uri link href website webhook endpoint",
    "date": "date time when day datetime timestamp deadline due until since month year checkin checkout weekday"
    " start end",
    "principal": "recipient to cc bcc email iban account payee beneficiary participant attendee invitee guest user"
    " username member owner assignee contact phone mobile receiver channel address payer reviewer friend customer"
    " client employee sender group team",
    "amount": "amount price quantity qty sum total cost fee payment value",
    "content": "body text content subject message description note comment summary reason html caption detail"
    " instruction prompt remark memo feedback markdown data pattern",
    "object": "id path file filename name key uid uuid guid ref reference number code title folder directory"
    " repository repo branch table database index label category source target destination location city resource"
    " attachment",
}
_ROLE_OF: Final = {word: role for role, words in _LISTS.items() for word in words.split()}
_FIRST: Final[tuple[Role, ...]] = ("secret", "url", "date", "amount")
"""Roles a word gives wherever in a name it stands, unless the name ends in what identifies a thing."""
_FORMATS: Final[dict[str, Role]] = {
    "email": "principal",
    "idn-email": "principal",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "date": "date",
    "date-time": "date",
    "time": "date",
    "uuid": "object",
}
_DIRECTING: Final[frozenset[Role]] = frozenset({"principal", "object", "amount", "url", "secret"})
"""Roles of arguments that decide where an effect goes, so they are controls."""
_NUMBERS: Final = frozenset({"integer", "number"})
_NAMES: Final = frozenset({"name", "title", "label", "category", "location", "city"})
"""What a new thing is called is said about it; an old one is found by it."""
_MAKING: Final = frozenset(VERBS[name] for name in ("create", "add", "send", "post", "schedule", "write", "email"))


@dataclass(frozen=True, slots=True)
class Guess:
    """The role of one argument; ``sure`` is false where nothing told it."""

    path: str
    role: Role
    sure: bool
    schema: Mapping[str, Any]

    @property
    def control(self) -> bool:
        """Says whether it decides where the effect goes."""
        return self.role in _DIRECTING


def guess_arguments(schema: Mapping[str, Any], name: tuple[str, ...], effect: Effect) -> tuple[Guess, ...]:
    """Answers the arguments in the order of the schema, at most as many as an entry takes."""
    making = any(VERBS.get(word) in _MAKING for word in name)
    found: list[Guess] = []
    for guess in _guesses(schema, (), effect=effect, making=making):
        if len(found) == MAX_ROLES:
            break
        if len(guess.path) <= pointers.MAX_POINTER:
            found.append(guess)
    return tuple(found)


def uses(guesses: tuple[Guess, ...], effect: Effect) -> dict[str, Any]:
    """Answers what else an entry says of its arguments: what to hide, where it reaches, what budgets count."""
    said: dict[str, Any] = {
        "controls": [one.path for one in guesses if one.control],
        "sensitive": [one.path for one in guesses if one.role == "secret"],
    }
    targets = [one.path for one in guesses if one.role in {"url", "principal"} and not use_fault("targets", one.schema)]
    recipients = [one.path for one in guesses if one.role == "principal" and not use_fault("recipients", one.schema)]
    amounts = [one.path for one in guesses if one.role == "amount" and not use_fault("amount", one.schema)]
    if targets:
        said["targets"] = targets
    if effect != "read" and recipients:
        said["recipients"] = recipients
    if effect != "read" and len(amounts) == 1:
        said["amount"] = amounts[0]
    return said


def _guesses(schema: Mapping[str, Any], above: tuple[str, ...], *, effect: Effect, making: bool) -> Iterator[Guess]:
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(part, dict):
            continue
        path = (*above, name)
        form, kind, _ = one_form(part)
        role = _role(name, form, kind, making=making)
        if (
            kind == "object"
            and form.get("properties")
            and role not in {"principal", "secret"}
            and len(path) < MAX_DEPTH
        ):
            yield from _guesses(form, path, effect=effect, making=making)
            continue
        yield Guess(pointers.pointer(path), role or _unknown(effect), role is not None or effect == "read", part)


def _unknown(effect: Effect) -> Role:
    """Answers the role of what nobody knows: where something is changed it may say what, so it counts as a control."""
    return "content" if effect == "read" else "object"


def _role(name: str, form: Mapping[str, Any], kind: str | None, *, making: bool) -> Role | None:
    if kind == "array":
        form, kind, _ = one_form(form.get("items"))
    if kind == "boolean" or "enum" in form or "const" in form:
        return "content"
    words = tuple(singular(word) for word in words_of(name))
    role = _by_words(words, making=making)
    said = form.get("format")
    if isinstance(said, str) and said in _FORMATS and role != "secret":
        return _FORMATS[said]
    if role is None and kind in _NUMBERS and "amount" in words_of(str(form.get("description", ""))):
        return "amount"
    return role if role is None or _fits(role, kind) else None


def _fits(role: Role, kind: str | None) -> bool:
    if role in {"principal", "secret", "url"} and kind in _NUMBERS:
        return False
    return kind != "object" or role not in {"amount", "date", "secret", "url"}


def _by_words(words: tuple[str, ...], *, making: bool) -> Role | None:
    """Reads a name from its end, where English says what a thing is: email_id is an id, new_password a password."""
    roles = [_ROLE_OF[word] for word in reversed(words) if word in _ROLE_OF]
    named = making and not _NAMES.isdisjoint(words[-1:]) and "file" not in words and "principal" not in roles
    if named or not _LEAFING.isdisjoint(words):
        return "content"
    first = next((role for role in _FIRST if role in roles), None)
    if first and roles[0] != "object":
        return first
    if words[-1:] == ("id",) and "email" in words:
        return "object"
    if not roles and not THINGS.keys().isdisjoint(words[-1:]):
        return "object"
    return "principal" if "principal" in roles else next(iter(roles), None)
