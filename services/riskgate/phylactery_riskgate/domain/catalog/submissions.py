"""Submissions of forms: calls whose wording the operator fixed, and whose blanks a person filled in.

A template has the call's arguments with ``{field}`` in its texts. The catalog lists the templates, so what a form may
send is the operator's word as much as the catalog is. A call is a submission if it is one of them and the run of that
form submits it; it is shown to a person before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.intent.model import FormRun
from phylactery_riskgate.domain.model import CatalogTool, Submission

MAX_SUBMISSIONS: Final = 1_000
FORM_ARGUMENTS: Final = ("form", "version")
"""The arguments of a tool for forms alone that say whose run calls it."""
FORM_NAME: Final = r"^[a-z][a-z0-9_-]{0,63}$"
MAX_NAME: Final = 200
"""Characters that a field may put into an argument that decides where the effect goes."""
_PARTS: Final = re.compile(r"\{\{|\}\}|\{([a-z][a-z0-9_]{0,63})\}|[{}]")
_DIVIDES: Final = re.compile(r"[/\\?#&%\x00-\x1f\x7f\u0085\u2028\u2029]|^\.|\.\.")
"""What would make another place of the text around it: a separator, a control character, or a leading dot."""


class SubmissionEntry(BaseModel):
    """One template in tools.yaml."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    form: Annotated[str, Field(pattern=FORM_NAME)]
    tool: Annotated[str, Field(min_length=1, max_length=128)]
    args: dict[str, Any]
    approval_class: Annotated[Literal["self", "peer"], Field(alias="class")] = "self"


Fault = tuple[tuple[str | int, ...], str]
"""The place below the entry, and the fault."""


def faults(entry: SubmissionEntry, tool: CatalogTool | None) -> Iterator[Fault]:
    """Return the faults of an entry; ``tool`` is the catalog's, or None."""
    if tool is None:
        yield ("tool",), f"the tool {entry.tool!r} is not in the catalog"
        return
    properties = tool.schema.get("properties", {})
    for name in entry.args:
        if name not in properties:
            yield ("args", name), f"{entry.tool} has no argument {name!r}"
    for name in tool.schema.get("required", ()):
        if name not in entry.args:
            yield ("args",), f"lacks the argument {name!r}, without which {entry.tool} cannot be called"
    for place, text in _texts(entry.args, ()):
        if any(found.group() in "{}" for found in _PARTS.finditer(text)):
            yield ("args", *place), "a brace stands for itself as {{ or }}; a field is {name} in lower case"
        elif re.search(r"\}\{", text):
            yield ("args", *place), "two fields without a character between them cannot be told apart"


def submission_of(entry: SubmissionEntry) -> Submission:
    """Return the template of an entry."""
    return Submission(entry.form, entry.args, entry.approval_class)


class Submitted(NamedTuple):
    """Whether a call is what a form submits, and whether somebody else approves it; the fact of the policies."""

    registered: bool
    peer: bool


NOTHING_SUBMITTED: Final = Submitted(registered=False, peer=False)


def submitted(tool: CatalogTool, arguments: Mapping[str, Any], run: FormRun | None) -> Submitted:
    """Return the fact of a call with these bound arguments.

    ``run`` is the form that submits it, as the agent's runtime says: without it no call is a submission, whatever it
    looks like. The arguments are an instance of one of that form's templates, the strictest of which counts; those of a
    tool for forms alone name the form and the version themselves.
    """
    if run is None:
        return NOTHING_SUBMITTED
    templates = [one for one in tool.submissions if one.form == run.form]
    if tool.forms_only:
        registered = [arguments.get(name) for name in FORM_ARGUMENTS] == [run.form, run.version]
    else:
        templates = [one for one in templates if _is_instance(one, tool, arguments)]
        registered = bool(templates)
    peer = run.peer or any(one.approval_class == "peer" for one in templates)
    return Submitted(registered, registered and peer)


def _is_instance(submission: Submission, tool: CatalogTool, arguments: Mapping[str, Any]) -> bool:
    for name, value in arguments.items():
        if name not in submission.args:
            schema = tool.schema.get("properties", {}).get(name, {})
            if "default" not in schema or not _same(schema["default"], value):
                return False
        elif not _fits(submission.args[name], value, _Place(tool, (name,))):
            return False
    return submission.args.keys() <= arguments.keys()


@dataclass(frozen=True, slots=True)
class _Place:
    tool: CatalogTool
    tokens: tuple[str, ...]

    def below(self, token: str) -> _Place:
        return _Place(self.tool, (*self.tokens, token))

    @property
    def decides(self) -> bool:
        """Return True if the argument is one that the catalog says decides where the effect goes."""
        path, tool = pointers.pointer(self.tokens), self.tool
        deciding = (*tool.controls, *tool.paths, *tool.recipients, *tool.targets)
        return any(path == one or path.startswith(f"{one}/") for one in deciding)


def _fits(template: Any, value: Any, place: _Place) -> bool:
    """Return True if a value is a template filled in. A field alone may be a number or a truth value, too."""
    if isinstance(template, str):
        return _fits_text(template, value, place)
    if isinstance(template, Mapping):
        return (
            isinstance(value, Mapping)
            and template.keys() == value.keys()
            and all(_fits(part, value[name], place.below(name)) for name, part in template.items())
        )
    if isinstance(template, list):
        return (
            isinstance(value, list)
            and len(template) == len(value)
            and all(_fits(part, one, place) for part, one in zip(template, value, strict=True))
        )
    return _same(template, value)


def _fits_text(template: str, value: Any, place: _Place) -> bool:
    literals, fields = _split(template)
    if fields and literals == ["", ""] and not isinstance(value, str):
        return isinstance(value, bool | int | float)
    if not isinstance(value, str) or not value.startswith(literals[0]):
        return False
    if not fields:
        return value == literals[0]
    at, held = len(literals[0]), []
    for literal in literals[1:-1]:
        found = value.find(literal, at)
        if found < 0:
            return False
        held.append(value[at:found])
        at = found + len(literal)
    last = literals[-1]
    if not value.endswith(last) or len(value) - len(last) < at:
        return False
    held.append(value[at : len(value) - len(last)])
    return all(_is_held(text, place) for text in held)


def _is_held(text: str, place: _Place) -> bool:
    """Return True if a field may hold a text where it stands; where an effect goes is no more than a name."""
    return not place.decides or (0 < len(text) <= MAX_NAME and _DIVIDES.search(text) is None)


def _split(template: str) -> tuple[list[str], list[str]]:
    """Return the literal texts of a template and the fields between them."""
    literals, fields, at = [""], [], 0
    for found in _PARTS.finditer(template):
        literals[-1] += template[at : found.start()]
        at = found.end()
        if found.group(1):
            fields.append(found.group(1))
            literals.append("")
        else:
            literals[-1] += found.group()[0]
    literals[-1] += template[at:]
    return literals, fields


def _texts(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inside in value.items():
            yield from _texts(inside, (*place, name))
    elif isinstance(value, list):
        for index, inside in enumerate(value):
            yield from _texts(inside, (*place, index))


def _same(one: Any, other: Any) -> bool:
    """Return True for equal JSON values: true is not 1."""
    return one == other and isinstance(one, bool) is isinstance(other, bool)
