"""The form graph's external dependencies: the forms, the time, and a model's opinion if there is a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.opinions import Opinion
from phylactery_forms.dialogue.state import ConversationState
from phylactery_forms.values.model import Context, Language


class FormReader(Protocol):
    """A model that reads messages of one turn in a form. Of a form with sensitive fields it is shown nothing."""

    async def read(self, form: Form, conversation: ConversationState, text: str, context: Context) -> Opinion | None:
        """Return what the model reads in a message, None if it gives nothing usable. It is asked once a turn."""
        ...

    async def thanks(self, form: Form, language: Language) -> str:
        """Return the model's own words of thanks for a submitted form; empty where the form's are said."""
        ...


class Submissions(Protocol):
    """What one person submits in one turn. Raises Unavailable if the store fails."""

    async def store(self, form: str, version: str, values: Mapping[str, str], *, key: str) -> str:
        """Store a submission and return its id, once per key: the same key again returns the same id."""
        ...


@dataclass(frozen=True, slots=True)
class FormContext:
    """What the form nodes of one turn need."""

    forms: Mapping[str, Form]
    context: Context
    """The time of the turn in the person's zone; language and region are taken from the conversation."""
    reader: FormReader | None = None
