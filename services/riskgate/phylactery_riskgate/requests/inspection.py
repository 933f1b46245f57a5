"""What InspectionService is asked."""

from __future__ import annotations

from typing import Annotated

from phylactery_chassis.inspection import ALL_KINDS, Confidence, FindingKind, Wanted
from phylactery_chassis.rpc.validation import EdgeModel
from pydantic import AfterValidator, Field

MAX_TEXT_BYTES = 1024 * 1024
MAX_TEXTS = 100


def _inspectable(text: str) -> str:
    return _fit_together([text])[0]


def _fit_together(texts: list[str]) -> list[str]:
    """Refuses texts that are too long together, before anything reads them."""
    if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > MAX_TEXT_BYTES:
        raise ValueError(f"a request holds at most {MAX_TEXT_BYTES:,} bytes of text in UTF-8")
    return texts


class OptionsInput(EdgeModel):
    """What to look for and what to answer; no kinds stand for all of them."""

    kinds: Annotated[tuple[FindingKind, ...], Field(max_length=MAX_TEXTS)] = ()
    min_confidence: Confidence = Confidence.MEDIUM
    want_redacted: bool = False

    @property
    def wanted(self) -> Wanted:
        """Answers it as inspection takes it."""
        return Wanted(frozenset(self.kinds) or ALL_KINDS, self.min_confidence)


class InspectInput(EdgeModel):
    """One text."""

    text: Annotated[str, AfterValidator(_inspectable)]
    options: OptionsInput


class InspectBatchInput(EdgeModel):
    """Several texts."""

    texts: Annotated[list[str], Field(min_length=1, max_length=MAX_TEXTS), AfterValidator(_fit_together)]
    options: OptionsInput
