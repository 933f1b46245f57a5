"""Forms read from files: the schema first, then what a schema cannot say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from phylactery_understanding.replies.answers import plain_words

from phylactery_forms.definitions.documents import Document, FormError, parse_document, read_document
from phylactery_forms.definitions.model import (
    SUBMIT_FORM,
    Condition,
    Escalation,
    Field,
    Form,
    Phrases,
    Submission,
    Validator,
)
from phylactery_forms.definitions.templates import TemplateError, placeholders
from phylactery_forms.values.model import ChoiceOptions, OptionError, compile_pattern, value_type

_SUFFIXES: Final = (".yaml", ".yml")
_STORED: Final = frozenset({SUBMIT_FORM, "write_file"})
"""Tools by which a form is stored. A file per submission had a name that the next one could have, too."""
_CANONICAL: Final = {"yes_no": ("yes", "no")}


def read_form(file: Path) -> Form:
    """Return the form of a file. Raise FormError, with file and line, if it cannot be used."""
    return _form(read_document(file))


def parse_form(raw: bytes, name: str = "form") -> Form:
    """Return the form of a file's content; raises as ``read_form`` does."""
    return _form(parse_document(raw, name))


def read_forms(folder: Path) -> Mapping[str, Form]:
    """Return the forms of a folder by id. Raise FormError if one cannot be used, or two have one id or trigger."""
    found, faults = checked_forms(folder)
    if faults:
        raise faults[0]
    return found


def checked_forms(folder: Path) -> tuple[Mapping[str, Form], list[FormError]]:
    """Return the usable forms of a folder by id, and the fault of each other file.

    Raise FormError if there is no such folder.
    """
    found: dict[str, Form] = {}
    faults: list[FormError] = []
    triggers: dict[tuple[str, ...], Form] = {}
    if not folder.is_dir():
        raise FormError(f"{folder} is not a folder")
    for file in sorted(folder.iterdir()):
        if file.suffix not in _SUFFIXES or not file.is_file():
            continue
        try:
            form = read_form(file)
            _check_among(form, found, triggers)
        except FormError as error:
            faults.append(error)
            continue
        found[form.id] = form
        triggers |= {plain_words(phrase): form for some in form.triggers.values() for phrase in some}
    return found, faults


def _check_among(form: Form, found: Mapping[str, Form], triggers: Mapping[tuple[str, ...], Form]) -> None:
    """Raise FormError if another form has the id, or begins with the same words."""
    if form.id in found:
        raise FormError(f"{form.source}:1: the id '{form.id}' is taken by {found[form.id].source}; choose another")
    for phrase in (phrase for some in form.triggers.values() for phrase in some):
        other = triggers.get(plain_words(phrase))
        if other is not None:
            raise FormError(f"{form.source}:1: the trigger '{phrase}' begins {other.source} already; choose another")


def sample_folder() -> Path:
    """Return the folder of the forms that come with the package; an operator copies from it."""
    return Path(str(files("phylactery_forms") / "samples"))


def _form(document: Document) -> Form:
    data = document.data
    fields: dict[str, Field] = {}
    for number, raw in enumerate(data["fields"]):
        one = _field(document, number, raw)
        if one.id in fields:
            raise document.fault(["fields", number, "id"], f"the field '{one.id}' is defined twice")
        fields[one.id] = one
    _check_conditions(document, fields)
    for kind in ("es", "en"):
        for number, phrase in enumerate(data["triggers"][kind]):
            if not plain_words(phrase):
                raise document.fault(["triggers", kind, number], f"the trigger '{phrase}' has no words")
    form = Form(
        id=data["id"],
        version=data["version"],
        hash=document.hash,
        title=data["title"],
        description=data["description"],
        triggers=_phrases(data["triggers"]),
        fields=tuple(fields.values()),
        examples=_phrases(data.get("examples", {})),
        prompts=data.get("prompts", {}),
        digressions=data.get("digressions", 5),
        escalation=_escalation(document, fields),
        submit=_submission(document, fields),
        model=data.get("model", "auto"),
        thanks=data.get("thanks", "fixed"),
        source=document.file,
    )
    for name, texts in form.prompts.items():
        for kind, text in texts.items():
            _check_template(document, ["prompts", name, kind], text, fields)
    return form


def _field(document: Document, number: int, raw: Mapping[str, Any]) -> Field:
    at: list[str | int] = ["fields", number]
    try:
        kind = value_type(raw["type"], raw.get("options", {}))
    except OptionError as error:
        raise document.fault([*at, "options"], f"field '{raw['id']}': {error}") from error
    for place, rule in enumerate(raw.get("validators", ())):
        if pattern := rule.get("pattern"):
            _check_pattern(document, [*at, "validators", place, "pattern"], pattern)
    if "accept" in raw and raw["type"] != "text":
        raise document.fault([*at, "accept"], f"field '{raw['id']}': only a text accepts what is doubtful")
    return Field(
        id=raw["id"],
        type=kind,
        label=raw["label"],
        ask=raw["ask"],
        aliases=_phrases(raw.get("aliases", {})),
        help=raw.get("help"),
        example=raw.get("example"),
        validators=tuple(Validator(**rule) for rule in raw.get("validators", ())),
        attempts=raw.get("attempts", 3),
        sensitive=raw.get("sensitive", False),
        confirm=raw.get("confirm", False),
        optional=raw.get("optional", False),
        doubtful="accept" in raw,
        depends_on=_condition(raw.get("depends_on", {})),
    )


def _check_pattern(document: Document, path: list[str | int], pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except OptionError as error:
        raise document.fault(path, f"{error}; RE2 has no look-around and no back-references") from error


def _check_conditions(document: Document, fields: Mapping[str, Field]) -> None:
    """Raise FormError for a condition over a field or value that does not exist, and for one that waits for itself."""
    for number, one in enumerate(fields.values()):
        _check_condition(document, ["fields", number, "depends_on"], one.depends_on, fields)
    order = list(fields)
    for number, one in enumerate(fields.values()):
        chain = _cycle(one.id, fields)
        at: list[str | int] = ["fields", number, "depends_on"]
        if chain:
            raise document.fault(at, f"depends_on goes in a circle: {' → '.join(chain)}")
        late = [name for name in one.depends_on if order.index(name) > number]
        if late:
            raise document.fault(at, f"'{one.id}' depends on '{late[0]}', which is asked later; move it up")


def _cycle(start: str, fields: Mapping[str, Field]) -> list[str]:
    """Return the chain of conditions that leads from a field to itself; empty if there is none."""
    todo: list[list[str]] = [[start]]
    seen: set[str] = set()
    while todo:
        chain = todo.pop()
        for name in fields[chain[-1]].depends_on:
            if name == start:
                return [*chain, name]
            if name not in seen:
                seen.add(name)
                todo.append([*chain, name])
    return []


def _check_condition(document: Document, path: list[str | int], rule: Condition, fields: Mapping[str, Field]) -> None:
    for name, values in rule.items():
        if name not in fields:
            raise document.fault([*path, name], f"there is no field '{name}'; there are: {', '.join(fields)}")
        known = values_of(fields[name])
        wrong = [value for value in values if known and value not in known]
        if wrong:
            raise document.fault([*path, name], f"'{name}' is never '{wrong[0]}'; it is one of {', '.join(known)}")


def values_of(one: Field) -> tuple[str, ...]:
    """Return every canonical value of a field that has a fixed set of them; empty if it has not."""
    if isinstance(one.type.options, ChoiceOptions):
        return tuple(choice.id for choice in one.type.options.choices)
    return _CANONICAL.get(one.type.name, ())


def _condition(raw: Mapping[str, Any]) -> Condition:
    return {name: (value,) if isinstance(value, str) else tuple(value) for name, value in raw.items()}


def _phrases(raw: Mapping[str, Any]) -> Phrases:
    return {"es": tuple(raw["es"]), "en": tuple(raw["en"])} if raw else {}


def _escalation(document: Document, fields: Mapping[str, Field]) -> Escalation:
    raw = document.data.get("escalation", {})
    completion = raw.get("completion")
    rule = None if completion is None else _condition(completion.get("when", {}))
    if rule:
        _check_condition(document, ["escalation", "completion", "when"], rule, fields)
    return Escalation(
        phrases=_phrases(raw.get("keyword", {}).get("phrases", {})),
        timeout_minutes=raw.get("timeout", {}).get("minutes"),
        sentiment=raw.get("sentiment", {}).get("threshold", 3),
        llm_intent=raw.get("llm_intent", False),
        completion=rule,
    )


def _submission(document: Document, fields: Mapping[str, Field]) -> Submission | None:
    raw = document.data.get("submit")
    if not raw and raw != {}:
        return None
    raw = {} if raw is True else raw
    named, args = raw.get("tool", SUBMIT_FORM), raw.get("args", {})
    if named == SUBMIT_FORM and args:
        raise document.fault(["submit", "args"], f"{SUBMIT_FORM} has no args: name fields, or leave both out")
    if named != SUBMIT_FORM and "args" not in raw:
        raise document.fault(["submit", "tool"], f"{named} needs args; without tool the form is stored for the team")
    if named != SUBMIT_FORM and "fields" in raw:
        raise document.fault(["submit", "fields"], f"fields are those that {SUBMIT_FORM} stores; {named} has args")
    for path, text in _strings(args, ["submit", "args"]):
        _check_template(document, path, text, fields)
        if "}{" in text:
            raise document.fault(path, "two fields without a character between them cannot be told apart")
    for kind, text in raw.get("confirm", {}).items():
        _check_template(document, ["submit", "confirm", kind], text, fields)
    tool = SUBMIT_FORM if named in _STORED else named
    kept = _kept(document, raw, fields) if tool == SUBMIT_FORM else ()
    return Submission(tool, args, raw.get("class", "self"), raw.get("confirm"), kept, named)


def _kept(document: Document, raw: Mapping[str, Any], fields: Mapping[str, Field]) -> tuple[str, ...]:
    """Return the fields whose values are stored: those that the file names, or all that are not sensitive.

    A file that named a file names them by its placeholders.
    """
    for number, name in enumerate(raw.get("fields", ())):
        if name not in fields:
            raise document.fault(
                ["submit", "fields", number], f"there is no field '{name}'; there are: {', '.join(fields)}"
            )
    written = (name for _, text in _strings(raw.get("args", {}), []) for name in placeholders(text))
    named = set(raw.get("fields", ())) or set(written)
    return tuple(name for name, one in fields.items() if (name in named if named else not one.sensitive))


def _check_template(document: Document, path: list[str | int], text: str, fields: Mapping[str, Field]) -> None:
    try:
        names = placeholders(text)
    except TemplateError as error:
        raise document.fault(path, str(error)) from error
    for name in names:
        if name not in fields:
            raise document.fault(path, f"'{{{name}}}' names no field; there are: {', '.join(fields)}")


def _strings(value: Any, path: list[str | int]) -> Iterator[tuple[list[str | int], str]]:
    """Return every text in the arguments, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _strings(inner, [*path, name])
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _strings(inner, [*path, number])
