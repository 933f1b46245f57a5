"""The model of a form: fields, escalation policies and the submission, as they are in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from phylactery_forms.definitions.templates import filled
from phylactery_forms.values.model import Language, ValueType

Texts = Mapping[Language, str]
"""A text in each language."""
Phrases = Mapping[Language, tuple[str, ...]]
Condition = Mapping[str, tuple[str, ...]]
"""Canonical values by field; it holds if each of the fields has one of its values."""

DISTINCTIVE: Final = frozenset({"email", "phone", "url", "date", "time", "money", "national_id"})
"""Types whose values are recognised wherever they stand; any other is read only where it is asked for or named."""
UNMISTAKABLE: Final = frozenset({"email", "phone", "url", "national_id"})
"""Those of them that are nothing else even where something else is asked for."""
SUBMIT_FORM: Final = "submit_form"
"""The tool that stores what a form submits, each submission on its own."""
FREE: Final = frozenset({"text", "address"})
"""Types that accept almost any words."""


@dataclass(frozen=True, slots=True)
class Validator:
    """A further rule for a value; ``message`` says what is expected."""

    message: Texts
    pattern: str = ""
    min_length: int = 0
    max_length: int = 0


@dataclass(frozen=True)
class Field:
    """One field of a form."""

    id: str
    type: ValueType
    label: Texts
    ask: Texts
    aliases: Phrases = field(default_factory=dict)
    help: Texts | None = None
    example: Texts | None = None
    validators: tuple[Validator, ...] = ()
    attempts: int = 3
    sensitive: bool = False
    confirm: bool = False
    optional: bool = False
    doubtful: bool = False
    """A text that is taken whatever it says: a question, a guess, what somebody takes back."""
    depends_on: Condition = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Escalation:
    """Which policies hand a conversation to a person; a policy that is None or empty is off, but for explicit wishes.

    Somebody who asks for a person is always heard, whatever a form says.
    """

    phrases: Phrases = field(default_factory=dict)
    timeout_minutes: int | None = None
    sentiment: int | None = 3
    llm_intent: bool = False
    completion: Condition | None = None
    """The condition on the values under which a completed form goes to a person; empty is always."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The call that submits a form.

    By ``SUBMIT_FORM`` the values of ``fields`` are stored, in the form's order; any other tool is given ``args``, which
    have ``{field}`` placeholders. ``named`` is the tool that the file names.
    """

    tool: str
    args: Mapping[str, Any]
    approval_class: Literal["self", "peer"] = "self"
    confirm: Texts | None = None
    fields: tuple[str, ...] = ()
    named: str = ""


@dataclass(frozen=True)
class Form:
    """A form; ``hash`` identifies the exact file it was read from."""

    id: str
    version: int
    hash: str
    title: Texts
    description: Texts
    triggers: Phrases
    fields: tuple[Field, ...]
    examples: Phrases = field(default_factory=dict)
    """Sentences that begin it; one that has most of their words does too."""
    prompts: Mapping[str, Texts] = field(default_factory=dict)
    digressions: int = 5
    """How often a person may do something else before they are asked whether to go on."""
    escalation: Escalation = field(default_factory=Escalation)
    submit: Submission | None = None
    model: Literal["auto", "never"] = "auto"
    """Whether a configured model reads messages of which the rules know nothing."""
    thanks: Literal["fixed", "model"] = "fixed"
    source: str = ""

    def submitted_args(self, values: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments of the call that submits canonical values by field; empty if nothing is submitted."""
        submit = self.submit
        if submit is None:
            return {}
        if submit.tool != SUBMIT_FORM:
            return dict(filled(submit.args, values))
        given = {name: values[name] for name in submit.fields if name in values}
        return {"form": self.id, "version": self.hash, "values": given}

    @property
    def is_sensitive(self) -> bool:
        """Return True if a field is: then what is said in the form may hold its value, and is not kept readable."""
        return any(one.sensitive for one in self.fields)

    @property
    def read_as_stored(self) -> str:
        """Return the tool that the file names and that is read as ``SUBMIT_FORM``; empty if there is none."""
        submit = self.submit
        return submit.named if submit is not None and submit.tool == SUBMIT_FORM != submit.named else ""

    @cached_property
    def by_id(self) -> Mapping[str, Field]:
        """Return the fields by their ids."""
        return {one.id: one for one in self.fields}
