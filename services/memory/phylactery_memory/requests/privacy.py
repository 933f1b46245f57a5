"""What is asked of somebody's privacy."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier
from pydantic import StringConstraints


class EraseUserItem(EdgeModel):
    """Whom to erase; an empty subject is the caller."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
    request_id: LongIdentifier


class GetErasureItem(EdgeModel):
    """Names an erasure."""

    erasure_id: Identifier
