"""What ControlService is asked."""

from __future__ import annotations

from typing import Annotated, Self

from phylactery_chassis.edge import EdgeModel, Identifier
from pydantic import StringConstraints, model_validator

from phylactery_riskgate.store.stops import Scope

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
_Words = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
_NAMED = frozenset({Scope.USER, Scope.TOOL})


class TargetInput(EdgeModel):
    """What to stop or to lift, and why."""

    scope: Scope
    tenant: _Name = ""
    name: _Name = ""
    reason: _Words = ""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.scope in _NAMED and not self.name:
            raise ValueError("name the user or the tool")
        if self.scope not in _NAMED and self.name:
            raise ValueError("only a user or a tool has a name")
        if self.scope is Scope.ALL and self.tenant:
            raise ValueError("all is every tenant: name none")
        return self


class RevokeInput(EdgeModel):
    """Which decision to void, and why."""

    decision_id: Identifier
    tenant: _Name = ""
    reason: _Words = ""
