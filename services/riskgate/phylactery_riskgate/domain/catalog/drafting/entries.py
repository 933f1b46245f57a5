"""Drafting of one tool's catalog entry, with notes on what a person has to review."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from phylactery_riskgate.domain.catalog.drafting.arguments import Guess, guess_arguments, uses
from phylactery_riskgate.domain.catalog.drafting.changes import leading_verb, sign_of_change
from phylactery_riskgate.domain.catalog.drafting.outputs import guess_outputs
from phylactery_riskgate.domain.catalog.drafting.phrases import Ask, ask_of, distinct, english, spanish
from phylactery_riskgate.domain.catalog.drafting.schemas import DraftError, usable
from phylactery_riskgate.domain.catalog.drafting.sources import Source
from phylactery_riskgate.domain.catalog.drafting.stakes import guess_stakes
from phylactery_riskgate.domain.catalog.drafting.vocabulary import (
    OFTEN_NOUNS,
    VERBS,
    Verb,
    tool_words,
    verb_of,
    words_of,
)
from phylactery_riskgate.domain.facts.argument_types import one_form
from phylactery_riskgate.domain.model import Effect, Idempotency, Risk

MAX_DESCRIPTION: Final = 1_000
MAX_NOTES: Final = 10
"""The number of notes per schema; further ones are only counted."""
_TIMEOUT_SECONDS: Final = 30
_EFFECTLESS: Final = frozenset({"think", "noop", "no_op", "finish", "sequentialthinking", "sequential_thinking"})
"""Exact names of tools that have no effect at all."""
_ARITHMETIC: Final = frozenset(
    "divide multiply square_root sqrt logarithm factorial absolute_value percentage mean median average variance"  # noqa: SIM905
    " standard_deviation sum_values min_value max_value".split()
)
"""Names of tools that have none either if all their arguments are numbers."""
_DIRECTORIES: Final = frozenset({"contact", "contacts", "directory", "members", "users", "employees", "customers"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposed entry: its fields in file order, and what to review in each."""

    fields: dict[str, Any]
    checks: dict[str, list[str]] = field(default_factory=dict)

    def check(self, name: str, what: str) -> None:
        """Add a review note to a field."""
        self.checks.setdefault(name, []).append(what)


def draft(source: Source) -> Draft:
    """Draft the entry of one tool.

    Raises:
        DraftError: no entry that a catalog accepts can be drafted.
    """
    made = Draft({"name": source.name})
    words = tool_words(source.name)
    verb = verb_of(words)
    _describe(source, made)
    risk, effect = _effect(source, words, verb, made)
    made.fields.update({"risk": risk, "effect": effect})
    schema = _schema(source, made)
    if _without_effect(source, schema, made):
        return made
    guesses = guess_arguments(schema, words, effect)
    made.fields["risk"] = _risk(source, guesses, risk, effect, made)
    said = uses(guesses, effect)
    if source.known.controls is not None:
        said["controls"] = list(source.known.controls)
    made.fields.update(said)
    if isinstance(said.get("amount"), dict):
        made.check(
            "amount", "unit: cents if 2000 is 20.00, and currency: EUR if it always is; unknown is over every limit"
        )
    made.fields["timeout_seconds"] = _whole(source.known.timeout_seconds or _TIMEOUT_SECONDS)
    made.fields["idempotency"] = _idempotency(source, effect, made)
    if source.known.forms_only:
        made.fields["forms_only"] = True
    for proposed in guess_stakes(source, words, effect, guesses):
        made.check("stakes", proposed)
    _arguments(source, guesses, effect, made)
    _asks(source, words, verb, made)
    _outputs(source, words, made)
    made.fields["schema"] = schema
    return made


def _whole(seconds: float) -> float:
    return int(seconds) if float(seconds).is_integer() else seconds


def _describe(source: Source, made: Draft) -> None:
    english_text = _readable(source.description)
    if english_text != " ".join(source.description.split()):
        made.check("description", "invisible characters were removed, or it was too long")
    if not english_text:
        english_text = f"{source.name}."
        made.check("description", "the tool says nothing of itself")
    made.fields["description"] = english_text
    spanish_text = _readable(source.known.description_es)
    if not spanish_text:
        made.check("description_es", "is not in Spanish yet")
    made.fields["description_es"] = spanish_text or english_text


def _readable(text: str) -> str:
    """Return a text in one line, without invisible characters."""
    plain = "".join(char if char.isprintable() else " " for char in text[: 4 * MAX_DESCRIPTION])
    return " ".join(plain.split())[:MAX_DESCRIPTION].strip()


def _effect(source: Source, words: tuple[str, ...], found: tuple[int, Verb] | None, made: Draft) -> tuple[Risk, Effect]:
    """Return risk and effect: a read only if the name begins with a reading verb and there is no sign of a change."""
    known, hints = source.known, source.hints
    if known.risk and known.effect:
        return known.risk, known.effect
    risk, effect = _of_words(source, words, found, made)
    if effect == "read" and (hints.read_only is False or hints.destructive):
        risk, effect = "high", "write"
        made.check("effect", "its name reads, and its server says that it changes something")
    elif effect != "read" and hints.read_only and source.trusted:
        risk, effect = "low", "read"
        made.check("effect", "a read, because you trust its server, which says so")
    elif effect != "read" and hints.read_only:
        made.check("effect", "its server says that it only reads; --trust-annotations accepts that")
    if effect == "write" and hints.destructive:
        risk, effect = "high", "irreversible"
        made.check("effect", "its server says that it may destroy something")
    elif effect == "irreversible" and hints.destructive is False and source.trusted:
        effect = "write"
        made.check("effect", "no more than a write, because you trust its server, which says that it destroys nothing")
    if not made.checks.get("effect"):
        made.check("effect", "guessed from its name; critical asks two people always")
    return risk, effect


def _of_words(
    source: Source, words: tuple[str, ...], found: tuple[int, Verb] | None, made: Draft
) -> tuple[Risk, Effect]:
    """Return risk and effect by the tool's own words. A description can only make them stricter, never a read."""
    described = VERBS.get(leading_verb(source.description))
    final = described is not None and described.effect == "irreversible"
    final = final and leading_verb(source.description) not in OFTEN_NOUNS
    verb = found[1] if found else None
    if found is not None and found[1].effect == "read":
        sign = sign_of_change(words, found[0], source.description, source.input_schema)
        if not sign:
            return found[1].risk, "read"
        made.check("effect", f"its name reads, and {sign}, so it counts as a write of high risk")
        return "high", "irreversible" if final else "write"
    if verb is None:
        made.check("effect", "no known verb in its name, so it counts as a write of high risk")
    elif final and verb.effect != "irreversible":
        made.check("effect", "its description says more than its name")
    if final or verb is None:
        return "high", "irreversible" if final else "write"
    return verb.risk, verb.effect


def _without_effect(source: Source, schema: dict[str, Any], made: Draft) -> bool:
    """Finish the entry of a tool without effect, which is on a closed list of names and shows no sign of a change."""
    words, hints = tool_words(source.name), source.hints
    name = "_".join(words)
    listed = name in _EFFECTLESS or name in _ARITHMETIC
    if source.known.effect or not listed or hints.read_only is False or hints.destructive:
        return False
    guesses = guess_arguments(schema, words, "read")
    texts = [one for one in guesses if not _is_numeric(one.schema)]
    if any(one.control or name in _ARITHMETIC for one in texts) or sign_of_change(words, 0, source.description, schema):
        return False
    made.checks["effect"] = ["of a name that does nothing; is that so? effect: write where it is not"]
    made.fields.update({"risk": "low", "effect": "none"})
    made.fields.update({"controls": [], "sensitive": [], "timeout_seconds": _TIMEOUT_SECONDS})
    made.fields.update({"idempotency": "read_only", "schema": schema})
    return True


def _is_numeric(schema: Any) -> bool:
    """Return True if a value is a number or a list of numbers."""
    form, kind, _ = one_form(schema)
    if kind == "array":
        _, kind, _ = one_form(form.get("items"))
    return kind in {"integer", "number"}


def _risk(source: Source, guesses: tuple[Guess, ...], risk: Risk, effect: Effect, made: Draft) -> Risk:
    """Return the risk given the arguments: a secret, or an amount with a recipient, makes a change high risk."""
    roles = {"amount" if one.money else one.role for one in guesses if one.money or one.role != "amount"}
    if effect == "read" and "url" in roles and not source.known.risk:
        made.check("risk", "medium, because it reaches out to an address")
        return "medium"
    if (
        source.known.risk
        or effect == "read"
        or risk == "high"
        or not ("secret" in roles or {"amount", "principal"} <= roles)
    ):
        return risk
    made.check("risk", "high because of its arguments: a secret, or an amount for a person")
    return "high"


def _idempotency(source: Source, effect: Effect, made: Draft) -> Idempotency:
    if source.known.idempotency:
        return source.known.idempotency
    if effect == "read":
        return "read_only" if source.hints.idempotent is not False else "unsafe"
    if source.hints.idempotent and source.trusted:
        return "idempotent_by_key"
    if source.hints.idempotent:
        made.check("idempotency", "its server says that it is idempotent: idempotent_by_key if that is true")
    return "unsafe"


def _schema(source: Source, made: Draft) -> dict[str, Any]:
    given = source.input_schema
    if given is None:
        made.check("schema", "the tool provides none: any argument is accepted")
        return {"type": "object"}
    schema, notes = usable(given)
    for note in notes[:MAX_NOTES]:
        made.check("schema", note)
    if len(notes) > MAX_NOTES:
        made.check("schema", f"and {len(notes) - MAX_NOTES} more of the kind")
    if notes:
        made.check("schema", "it is not the tool's own word for word, so its hash is not the one the tool reports")
    if schema.get("additionalProperties") is not False and "unevaluatedProperties" not in schema:
        made.check("schema", "undeclared arguments are accepted; additionalProperties: false refuses them")
    return schema


def _arguments(source: Source, guesses: tuple[Guess, ...], effect: Effect, made: Draft) -> None:
    if source.known.roles:
        made.fields["roles"] = dict(source.known.roles)
        return
    if guesses:
        made.fields["roles"] = {one.path: one.role for one in guesses}
    unsure = [one.path for one in guesses if not one.sure]
    if unsure and source.known.controls is None:
        made.check("roles", f"their role is unknown, so they count as objects: {', '.join(unsure[:MAX_NOTES])}")
    paths = [one.path for one in guesses if _file_path(one)]
    if paths:
        made.check("roles", f"paths: [{', '.join(paths)}] would let policies look at them as file paths")
    if not made.fields["controls"] and effect != "read":
        made.check("controls", "no argument decides where the effect goes, so every argument is weighed")


def _file_path(one: Guess) -> bool:
    return "path" in words_of(one.path.rpartition("/")[2]) and one.schema.get("type") == "string"


def _asks(source: Source, words: tuple[str, ...], verb: tuple[int, Verb] | None, made: Draft) -> None:
    known = source.known.asks
    asks = ask_of(words, verb, source.description, made.fields["effect"])
    phrases = {
        "en": distinct(known.phrases.en) or list(english(words, asks)),
        "es": distinct(known.phrases.es) or list(spanish(words, asks)),
    }
    examples = {"en": known.examples.en, "es": known.examples.es}
    made.fields["asks"] = {"phrases": phrases, "examples": examples}
    for what in _unasked(words, asks, phrases, known_phrases=bool(known.phrases.en or known.phrases.es)):
        made.check("asks", what)
    if not examples["en"] or not examples["es"]:
        made.check("asks", "examples: two or three whole requests in each language, as people write them")


def _unasked(
    words: tuple[str, ...], asks: tuple[Ask, ...], phrases: dict[str, list[str]], *, known_phrases: bool
) -> Iterator[str]:
    if not phrases["es"]:
        yield "phrases.es: how do people ask for it in Spanish?"
    if known_phrases:
        return
    if not asks and phrases["en"]:
        yield "phrases.en: no verb is known in its name, so this is its name alone"
    elif not asks:
        yield "phrases: its name suggests a read but it may do more, so there are no phrases: how do people ask for it?"
    elif not asks[0].things or words == (asks[0].word,):
        yield "phrases: its name is only a verb, so requests for other tools also match it"
    foreign = [one for ask in asks for one in ask.untranslated]
    if foreign and not known_phrases:
        yield f"phrases.es: do people call it so in Spanish? {', '.join(dict.fromkeys(foreign))}"


def _outputs(source: Source, words: tuple[str, ...], made: Draft) -> None:
    if source.known.output:
        made.fields["output"] = dict(source.known.output)
        if source.known.registry:
            made.fields["registry"] = list(source.known.registry)
        return
    try:
        outputs = guess_outputs(source.output_schema)
    except DraftError as error:
        raise DraftError(str(error).replace("its schema", "its output schema")) from error
    if not outputs:
        made.check("output", "no output schema, so all of it is free text; list its fields, as in /id: system")
    else:
        made.check(
            "output",
            "guessed from names; system: cannot be chosen by outsiders, private: must not leave without a request",
        )
        made.fields["output"] = outputs
    if not _DIRECTORIES.isdisjoint(words):
        made.check(
            "output", "is it maintained by people you trust? registry: [/*/email] would count its values as known"
        )
