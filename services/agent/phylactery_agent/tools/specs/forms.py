"""Specification of submit_form: what a form that says nothing else is submitted by, at its review alone."""

from __future__ import annotations

from typing import Annotated, Final

from phylactery_forms.definitions.model import SUBMIT_FORM as NAME
from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.tools.contract import Contract, ToolSpec
from phylactery_agent.tools.specs.parts import Arguments, object_schema

_FORM: Final = "^[a-z][a-z0-9_]{0,39}$"
_VERSION: Final = "^[0-9a-f]{16}$"
_MOST_VALUES, _LONGEST = 100, 20_000


class SubmitFormArguments(Arguments):
    """The arguments of submit_form: the form, the version of its definition, and canonical values by field."""

    form: Annotated[str, Field(pattern=_FORM)]
    version: Annotated[str, Field(pattern=_VERSION)]
    values: Annotated[dict[str, Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=_MOST_VALUES)]


SUBMIT_FORM: Final = ToolSpec(
    name=NAME,
    descriptions=in_each_language("tool_submit_form"),
    schema=object_schema(
        ["form", "version", "values"],
        form={"type": "string", "pattern": _FORM},
        version={"type": "string", "pattern": _VERSION},
        values={
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": _LONGEST},
            "maxProperties": _MOST_VALUES,
        },
    ),
    args_model=SubmitFormArguments,
    contract=Contract(risk="medium", effect="write", idempotency="idempotent_by_key", retries=1, answers="json"),
    verbs=(),
    patterns=(),
    examples=(),
    labels=in_each_language("tool_submit_form.label"),
    quotes_output=False,
    forms_only=True,
)
