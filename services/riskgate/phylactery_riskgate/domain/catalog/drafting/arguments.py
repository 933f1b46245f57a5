"""Guesses the roles of a tool's arguments from their names, types, formats and descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.catalog.catalog import use_fault
from phylactery_riskgate.domain.catalog.drafting.vocabulary import THINGS, VERBS, singular, word_set, words_of
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.facts.catalog_facts import MAX_ROLES
from phylactery_riskgate.domain.model import Effect, Role

MAX_DEPTH: Final = 8
"""The nesting limit; arguments nested deeper have the role of their parent."""

_PAGING: Final = word_set("page cursor offset continuation sort skip pagination")
_PAGED: Final = word_set("page next cursor continuation sort order per limit offset max result")
"""Words that, at the start of a name and with one of the following at its end, select a page of a list."""
_PAGE_ENDS: Final = word_set("page token size by direction result field dir index")
_FINDING: Final = word_set("""query search q filter where condition criteria pattern regex glob selector""")
"""Arguments that select: search terms in a reading tool, and the target in a changing one."""
_IDENTIFYING: Final = word_set("id uid uuid guid ref reference number slug sku path key hash sha iban")
_LISTS: Final[dict[Role, str]] = {
    "secret": "password passwd passphrase secret token apikey credential pin otp",
    "url": "url uri link href website webhook endpoint",
    "date": "date time when day datetime timestamp deadline due until since month year checkin checkout weekday"
    " start end",
    "principal": "recipient to cc bcc email iban account payee beneficiary participant attendee invitee guest user"
    " username member owner assignee contact phone mobile receiver channel address payer reviewer friend customer"
    " client employee sender group team role",
    "amount": "amount price quantity qty sum total cost fee payment replica count limit",
    "content": "body text content subject message description note comment summary reason html caption detail"
    " instruction prompt remark memo feedback markdown data concept topic thought headline language locale timezone"
    " color emoji reaction icon unit format",
    "object": "id path file filename name key uid uuid guid ref reference number code title folder directory"
    " repository repo branch table database index label tag category source target destination location city resource"
    " attachment environment env service sku version region namespace cluster sql statement command script permission"
    " scope visibility value",
}
_ROLE_OF: Final = {word: role for role, words in _LISTS.items() for word in words.split()}
_FIRST: Final[tuple[Role, ...]] = ("secret", "url", "date", "amount")
"""Roles implied by a word anywhere in a name, unless the name ends in an identifier."""
_SECRET_KEYS: Final = frozenset({"api", "access", "private", "secret", "auth", "encryption"})
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
"""Roles of arguments that decide where an effect goes, and so are controls."""
_NUMBERS: Final = frozenset({"integer", "number"})
_MONEY: Final = word_set("amount price sum total cost fee payment")
_CENTS: Final = word_set("cents cent minor centavos centavo centimos centimo pence hundredths")
"""Words in the name or description of an amount that is perhaps in hundredths."""
_COUNTING: Final = frozenset({"num", "count", "max", "min", "total"})
_NAMES: Final = frozenset({"name", "title", "label", "tag", "category", "location", "city"})
"""Names that describe a new object, but identify an existing one unless another argument does."""
_NAMING: Final = frozenset({"new", "display", "full", "first", "last"})
_PEOPLE_AND_FILES: Final = frozenset({"file", *(word for word, role in _ROLE_OF.items() if role == "principal")})
_KINDS_OF_CODE: Final = frozenset({"currency", "country", "language"})
_MAKING: Final = frozenset(VERBS[name] for name in ("create", "add", "send", "post", "schedule", "write", "email"))
_MOVING: Final = frozenset(VERBS[name] for name in ("move", "copy", "rename"))


@dataclass(frozen=True, slots=True)
class Guess:
    """The role of one argument; ``sure`` is False if it is only assumed, ``money`` True if it may be an amount."""

    path: str
    role: Role
    sure: bool
    schema: Mapping[str, Any]
    money: bool = False

    @property
    def control(self) -> bool:
        """Return True if the argument decides where the effect goes."""
        return self.role in _DIRECTING


@dataclass(frozen=True, slots=True)
class _Tool:
    """Context for reading a tool's arguments: its effect, and whether another argument identifies the target."""

    effect: Effect
    words: frozenset[str]
    making: bool
    moving: bool
    found: bool
    from_to: bool


def guess_arguments(schema: Mapping[str, Any], name: tuple[str, ...], effect: Effect) -> tuple[Guess, ...]:
    """Return the guesses in schema order, at most as many as an entry accepts."""
    names = [words_of(one) for one in schema.get("properties", {})]
    tool = _Tool(
        effect=effect,
        words=frozenset(map(singular, name)) | _NAMING,
        making=any(VERBS.get(word) in _MAKING for word in name),
        moving=any(VERBS.get(word) in _MOVING for word in name),
        found=any(words and words[-1] in _IDENTIFYING for words in names),
        from_to=("from",) in names and ("to",) in names,
    )
    found: list[Guess] = []
    for guess in _guesses(schema, (), tool):
        if len(found) == MAX_ROLES:
            break
        if len(guess.path) <= pointers.MAX_POINTER:
            found.append(guess)
    return tuple(found)


def uses(guesses: tuple[Guess, ...], effect: Effect) -> dict[str, Any]:
    """Return the entry's other fields on arguments: controls, sensitive ones, targets, and what budgets count."""
    said: dict[str, Any] = {
        "controls": [one.path for one in guesses if one.control],
        "sensitive": [one.path for one in guesses if one.role == "secret"],
    }
    targets = [one.path for one in guesses if one.role in {"url", "principal"} and not use_fault("targets", one.schema)]
    recipients = [one.path for one in guesses if one.role == "principal" and not use_fault("recipients", one.schema)]
    amounts = [one.path for one in guesses if one.money and not use_fault("amount", one.schema)]
    if targets:
        said["targets"] = targets
    if effect != "read" and recipients:
        said["recipients"] = recipients
    if effect != "read" and len(amounts) == 1:
        part = next(one.schema for one in guesses if one.path == amounts[0])
        said["amount"] = {"pointer": amounts[0], "unit": "unknown"} if in_cents(amounts[0], part) else amounts[0]
    return said


def _guesses(schema: Mapping[str, Any], above: tuple[str, ...], tool: _Tool) -> Iterator[Guess]:
    properties = schema.get("properties")
    for name, part in properties.items() if isinstance(properties, dict) else ():
        if not isinstance(part, dict):
            continue
        path = (*above, name)
        form, kind, _ = one_form(part)
        role = _role(name, form, kind, tool)
        if (
            kind == "object"
            and form.get("properties")
            and role not in {"principal", "secret"}
            and len(path) < MAX_DEPTH
        ):
            yield from _guesses(form, path, tool)
            continue
        sure, money = role is not None or tool.effect == "read", role == "amount" and _is_money(name, form)
        yield Guess(pointers.pointer(path), role or _unknown(tool.effect), sure, part, money)


def in_cents(path: str, form: Mapping[str, Any]) -> bool:
    """Return True if an amount may be in hundredths, by its name or its description: amount_cents, precio_centavos."""
    said = (*words_of(path.rpartition("/")[2]), *words_of(str(form.get("description", ""))))
    return not _CENTS.isdisjoint(said)


def _is_money(name: str, form: Mapping[str, Any]) -> bool:
    words = {singular(word) for word in words_of(name)}
    return (
        not _CENTS.isdisjoint(words_of(name))
        or not _MONEY.isdisjoint(words)
        or "amount" in words_of(str(form.get("description", "")))
    )


def _unknown(effect: Effect) -> Role:
    """Return the role of an unknown argument: a control if the tool changes something, as it may select the target."""
    return "content" if effect == "read" else "object"


def _role(name: str, form: Mapping[str, Any], kind: str | None, tool: _Tool) -> Role | None:
    if kind == "array":
        form, kind, _ = one_form(form.get("items"))
    if kind == "boolean" or "const" in form:
        return "content"
    words = tuple(singular(word) for word in words_of(name))
    role = _by_words(words, tool)
    if "enum" in form:
        return role if role in {"principal", "object"} and not _says_how(words) else "content"
    said = form.get("format")
    if isinstance(said, str) and said in _FORMATS and role != "secret":
        return _FORMATS[said]
    if kind in _NUMBERS and _counts(words, role, form, tool):
        return "amount"
    return role if role is None or _fits(role, kind) else None


def _counts(words: tuple[str, ...], role: Role | None, form: Mapping[str, Any], tool: _Tool) -> bool:
    """Return True if a number is a quantity; in a changing tool every number without a recognized name is."""
    if words[-1:] == ("value",) or (role in {None, "object"} and not _MONEY.isdisjoint(words[:1])):
        return True
    if tool.effect == "read":
        return role is None and "amount" in words_of(str(form.get("description", "")))
    return role in {None, "principal", "content"} and not _pages(words)


def _says_how(words: tuple[str, ...]) -> bool:
    """Return True if a choice selects a manner or kind rather than the target."""
    if _ROLE_OF.keys().isdisjoint(words):
        return True
    return words[-1:] == ("code",) and not _KINDS_OF_CODE.isdisjoint(words)


def _fits(role: Role, kind: str | None) -> bool:
    if role in {"principal", "secret", "url"} and kind in _NUMBERS:
        return False
    return kind != "object" or role not in {"amount", "date", "secret", "url"}


def _pages(words: tuple[str, ...]) -> bool:
    """Return True if a name selects a page of a list: page_token does, page_id does not."""
    if words[-1:] and words[-1] in _PAGING:
        return True
    return len(words) > 1 and words[0] in _PAGED and words[-1] in _PAGE_ENDS


def _by_words(words: tuple[str, ...], tool: _Tool) -> Role | None:
    return _by_use(words, tool) or _by_meaning(words)


def _by_use(words: tuple[str, ...], tool: _Tool) -> Role | None:
    """Return the role of a name whose meaning depends on whether the tool reads, creates or changes."""
    reading, last = tool.effect == "read", words[-1] if words else ""
    counting = words[:2] == ("number", "of") or (len(words) > 1 and words[0] in _COUNTING and last != "id")
    looking_for = last in _FINDING or (reading and not _FINDING.isdisjoint(words[:1]) and last not in _IDENTIFYING)
    made = tool.words if tool.making else _NAMING
    called = last in _NAMES and (len(words) == 1 or not made.isdisjoint(words[:-1]))
    what: Role = "content" if reading else "object"
    cases: tuple[tuple[bool, Role], ...] = (
        (_pages(words) or (reading and words in {("order",), ("limit",), ("max",)}), "content"),
        (looking_for, what),
        (tool.from_to and words in {("from",), ("to",)} and (reading or tool.moving), what),
        (called and _PEOPLE_AND_FILES.isdisjoint(words) and (tool.making or tool.found), "content"),
        (last == "key" and not _SECRET_KEYS.isdisjoint(words), "secret"),
        (counting, "content" if reading else "amount"),
    )
    return next((role for applies, role in cases if applies), None)


def _by_meaning(words: tuple[str, ...]) -> Role | None:
    """Return the role by the end of a name, its head noun in English: email_id is an id, new_password a password."""
    roles = [_ROLE_OF[word] for word in reversed(words) if word in _ROLE_OF]
    if _ROLE_OF.get(words[-1] if words else "") != "amount":
        roles = [role for role in roles if role != "amount"]  # a payment_intent is not an amount
    first = next((role for role in _FIRST if role in roles), None)
    if first and roles[0] != "object":
        return first
    if (words[-1:] == ("id",) and "email" in words) or (not roles and not THINGS.keys().isdisjoint(words[-1:])):
        return "object"
    content = roles[:1] == ["content"]
    return "principal" if "principal" in roles and not content else next(iter(roles), None)
