"""What "same as before" may mean in another form, or on another day: who somebody is, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.state import ConversationState, given_values

IDENTITY: Final = ("person_name", "email", "phone", "address")
"""The types of the values that are kept after a submission."""


def who_it_is(form: Form, conversation: ConversationState) -> dict[str, str]:
    """Return who filled in a form, by type: the first field of each type counts, and a sensitive one never."""
    given = given_values(form, conversation)
    return {kind: given[name] for kind, name in _fields(form).items() if name in given}


def same_as_before(form: Form, known: Mapping[str, str]) -> dict[str, str]:
    """Return the earlier values of a form's fields."""
    return {name: known[kind] for kind, name in _fields(form).items() if kind in known}


def _fields(form: Form) -> dict[str, str]:
    """Return the field of each type that is about the person."""
    found: dict[str, str] = {}
    for one in form.fields:
        if one.type.name in IDENTITY and one.type.name not in found:
            found[one.type.name] = one.id
    return {kind: name for kind, name in found.items() if not form.by_id[name].sensitive}
