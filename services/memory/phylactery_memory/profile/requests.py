"""Validated requests of the profile RPCs."""

from __future__ import annotations

from typing import Annotated, Self

from phylactery_chassis.rpc.validation import EdgeModel
from pydantic import Field, StringConstraints, ValidationInfo, field_validator, model_validator

from phylactery_memory.memories.requests import Etag, OriginItem
from phylactery_memory.profile.model import (
    MAX_FIELDS,
    MAX_SUPERSEDED,
    MAX_VALUE_CHARS,
    NAME_PATTERN,
    Value,
    is_name,
    one_line,
)

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


class ValueItem(EdgeModel):
    """A name and its value; exactly one of the three value fields is set."""

    name: Name
    text_value: Annotated[str, Field(min_length=1, max_length=MAX_VALUE_CHARS)] | None
    number_value: Annotated[float, Field(allow_inf_nan=False)] | None
    bool_value: bool | None

    @field_validator("text_value")
    @classmethod
    def _is_one_line(cls, text: str | None) -> str | None:
        if text is not None and not one_line(text):
            raise ValueError("is not one visible line: it is blank, or holds line breaks or control characters")
        return text

    @model_validator(mode="after")
    def _has_a_value(self) -> Self:
        if self.text_value is None and self.number_value is None and self.bool_value is None:
            raise ValueError("has no value: set text_value, number_value or bool_value")
        return self

    @property
    def value(self) -> Value:
        """Return the value that is set."""
        found = (self.text_value, self.number_value, self.bool_value)
        return next(value for value in found if value is not None)


class SetProfileItem(EdgeModel):
    """Changes to a profile."""

    values: Annotated[list[ValueItem], Field(max_length=MAX_FIELDS)]
    remove: Annotated[list[str], Field(max_length=MAX_FIELDS)]
    source: Annotated[int, Field(ge=0, le=5)]
    lineage: Annotated[list[OriginItem], Field(max_length=20)]
    etag: Etag

    @field_validator("values")
    @classmethod
    def _stand_once(cls, values: list[ValueItem]) -> list[ValueItem]:
        if len({item.name for item in values}) != len(values):
            raise ValueError("a name is listed twice")
        return values

    @field_validator("remove")
    @classmethod
    def _are_names_of_their_own(cls, remove: list[str], info: ValidationInfo) -> list[str]:
        if not all(is_name(name) for name in remove):
            raise ValueError("contains an invalid name: a lower-case letter, then at most 63 of [a-z0-9_.]")
        if {item.name for item in info.data.get("values", ())}.intersection(remove):
            raise ValueError("contains a name that is also in values")
        return remove

    @field_validator("source")
    @classmethod
    def _is_said_where_values_are(cls, source: int, info: ValidationInfo) -> int:
        if info.data.get("values") and not source:
            raise ValueError("is missing: say who said the values")
        return source


class GetProfileItem(EdgeModel):
    """How much of a profile to return."""

    max_superseded: Annotated[int, Field(ge=0, le=MAX_SUPERSEDED)]
