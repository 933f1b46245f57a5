"""What KeyService is asked."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.rpc.validation import EdgeModel
from pydantic import StringConstraints


class ListKeysInput(EdgeModel):
    """Which answer is known already."""

    etag: Annotated[str, StringConstraints(pattern=r"^[\x21-\x7e]{0,64}$")] = ""
