"""The form graph's external dependencies: the forms, the time, and a model's opinion if there is a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.values.model import Context


class FormExtractor(Protocol):
    """A model that reads a field's value where the rules find none."""

    async def extract(self, form: Form, field: Field, text: str, context: Context) -> str | None:
        """Return the value as the person wrote it; None, NOT_PROVIDED or INVALID for none. It is validated as any."""
        ...


class FormJudge(Protocol):
    """A model's opinion on a message that the rules leave open; None where it has none."""

    async def wants_person(self, form: Form, text: str) -> bool | None:
        """Return whether the person wants to be handed to another."""
        ...

    async def corrected_field(self, form: Form, filled: Sequence[str], asked: str, text: str) -> str | None:
        """Return the filled field that a message corrects."""
        ...

    async def off_topic(self, form: Form, asked: str, text: str) -> bool | None:
        """Return whether a message answers nothing of the form."""
        ...


class Submissions(Protocol):
    """What one person submits in one turn. Raises Unavailable if the store fails."""

    async def store(self, form: str, version: str, values: Mapping[str, str], *, key: str) -> str:
        """Store a submission and return its id, once per key: the same key again returns the same id."""
        ...


@dataclass(frozen=True, slots=True)
class FormContext:
    """What the form nodes of one turn need. Sensitive fields are never given to the extractor or the judge."""

    forms: Mapping[str, Form]
    context: Context
    """The time of the turn in the person's zone; language and region are taken from the conversation."""
    extractor: FormExtractor | None = None
    judge: FormJudge | None = None
