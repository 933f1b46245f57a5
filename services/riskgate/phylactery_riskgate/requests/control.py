"""What ControlService is asked."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, Identifier
from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from phylactery_riskgate.store.stops import Scope

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
_Words = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
_NAMED = frozenset({Scope.USER, Scope.TOOL})


class TargetInput(EdgeModel):
    """What to stop or to lift, and why."""

    scope: Scope
    tenant: _Name = ""
    name: Annotated[_Name, Field(validate_default=True)] = ""
    reason: _Words = ""

    @field_validator("tenant")
    @classmethod
    def _of_one(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("scope") is Scope.ALL:
            raise ValueError("all is every tenant: name none")
        return value

    @field_validator("name")
    @classmethod
    def _named(cls, value: str, info: ValidationInfo) -> str:
        scope = info.data.get("scope")
        if scope in _NAMED and not value:
            raise ValueError("name the user or the tool")
        if scope is not None and scope not in _NAMED and value:
            raise ValueError("only a user or a tool has a name")
        return value


class RevokeInput(EdgeModel):
    """Which decision to void, and why."""

    decision_id: Identifier
    tenant: _Name = ""
    reason: _Words = ""
