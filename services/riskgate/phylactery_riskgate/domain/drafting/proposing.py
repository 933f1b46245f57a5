"""Proposes a whole tools.yaml: each entry is read back by the catalog's own reader before it is answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from phylactery_riskgate.domain.bundle_files import MAX_FILE_BYTES, TOOLS_FILE
from phylactery_riskgate.domain.catalog import read_catalog
from phylactery_riskgate.domain.cedar_schema import build_schema
from phylactery_riskgate.domain.documents import BundleError, read_document
from phylactery_riskgate.domain.drafting.entries import Draft, draft
from phylactery_riskgate.domain.drafting.schemas import DraftError
from phylactery_riskgate.domain.drafting.sources import Skipped, Source, SourceError
from phylactery_riskgate.domain.drafting.writing import write
from phylactery_riskgate.domain.model import ApprovalClass

_LEVELS: Final = ("user",)
_CLASSES: Final = (ApprovalClass("self", 1, "requester", 0),)


def propose(sources: Iterable[Source]) -> tuple[str, tuple[Draft, ...], tuple[Skipped, ...]]:
    """Answers a tools.yaml that loads, its entries, and the tools none can be proposed for.

    Raises:
        SourceError: together they are more than a bundle's file holds.
    """
    drafts: list[Draft] = []
    skipped: list[Skipped] = []
    size = 0
    for source in sources:
        try:
            made, text = _tried(source)
        except DraftError as error:
            skipped.append(Skipped(source.name, str(error)))
            continue
        drafts.append(made)
        size += len(text.encode())
        if size > MAX_FILE_BYTES:
            raise SourceError(f"is more than {TOOLS_FILE} holds ({MAX_FILE_BYTES} bytes): draft fewer tools at once")
    return write(drafts), tuple(drafts), tuple(skipped)


def _tried(source: Source) -> tuple[Draft, str]:
    """Answers a draft and what is written of it, once the catalog's own reader has read it."""
    made = draft(source)
    text = write([made])
    try:
        document = read_document(TOOLS_FILE, text)
        build_schema(read_catalog(document, _LEVELS), _CLASSES, _LEVELS)
    except BundleError as error:
        raise DraftError(error.message) from error
    except ValueError as error:
        raise DraftError(f"Cedar cannot type its arguments: {error}") from error
    return made, text
