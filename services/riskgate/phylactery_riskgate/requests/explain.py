"""What RiskGateService.Explain is asked."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier
from pydantic import AfterValidator, Field, StringConstraints

from phylactery_riskgate.domain.model import Pathway
from phylactery_riskgate.requests.decisions import CallInput, Line

_OptionalSubject = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]


_CLASS = re.compile(r"[a-z][a-z0-9_]{0,63}")


def _class_names(value: list[str]) -> list[str]:
    if not all(_CLASS.fullmatch(name) for name in value):
        raise ValueError("an approval class is named with a-z, 0-9 and _, at most 64 characters")
    return value


class ExplainInput(EdgeModel):
    """A call to imagine, or a decision to explain."""

    question: Literal["call", "decision_id"]
    call: CallInput | None = None
    decision_id: Identifier | None = None
    thread_id: OptionalIdentifier = ""
    plan_step: Line = ""
    approved: Annotated[list[str], Field(max_length=10), AfterValidator(_class_names)]
    subject: _OptionalSubject = ""
    pathway: Pathway = "unspecified"
    task_id: OptionalIdentifier = ""
