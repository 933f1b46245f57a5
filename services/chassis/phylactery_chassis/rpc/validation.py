"""Request validation with pydantic, before any other code reads a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from google.protobuf.message import Message
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from phylactery_chassis.errors import MAX_VIOLATIONS, InvalidArgument, Violation

Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]
"""The id of a thread, run or message: 1 to 128 characters of [A-Za-z0-9_.:-]."""
OptionalIdentifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{0,128}$")]
"""An Identifier, or empty."""
LongIdentifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{8,128}$")]
"""A client-generated idempotency id of at least 8 characters."""
OptionalLongIdentifier = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9_.:-]{8,128})?$")]
"""A LongIdentifier, or empty."""
ToolName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
"""A tool's name."""
Sha256 = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""A hash in the form used by every contract."""
OptionalSha256 = Annotated[str, StringConstraints(pattern=r"^(sha256:[0-9a-f]{64})?$")]
"""A Sha256, or empty."""

_MAX_DESCRIPTION = 100

Model = TypeVar("Model", bound=BaseModel)


def fields(model: type[BaseModel], message: Message, **given: Any) -> dict[str, Any]:
    """Return a model's fields as the message holds them under the same names.

    ``given`` are those it holds in another form: enums, repeated and nested ones.
    """
    return {name: getattr(message, name) for name in model.model_fields if name not in given} | given


def from_message(model: type[Model], message: Message, **given: Any) -> Model:
    """Return the validated request of a message; see fields. Raise InvalidArgument, as parse."""
    return parse(model, fields(model, message, **given))


class EdgeModel(BaseModel):
    """A validated request: no unknown fields, no coercion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def parse(model: type[Model], data: Mapping[str, Any]) -> Model:
    """Return the validated request.

    Raise InvalidArgument INVALID_REQUEST with at most 20 violations of at most 100 characters, never with a value.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        violations = [
            Violation(".".join(str(part) for part in item["loc"])[:_MAX_DESCRIPTION], item["msg"][:_MAX_DESCRIPTION])
            for item in found[:MAX_VIOLATIONS]
        ]
        summary = "; ".join(f"{v.field}: {v.description}" for v in violations[:3])
        raise InvalidArgument(
            "INVALID_REQUEST", f"the request is not valid: {summary}", violations=violations
        ) from None
