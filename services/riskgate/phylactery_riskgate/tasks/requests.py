"""Request models of TaskService. JSON texts are parsed later, off the event loop if long; sizes are limited here."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from phylactery_chassis.inspection import ALL_KINDS, Confidence, FindingKind, Wanted
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, OptionalIdentifier, ToolName
from phylactery_understanding.interpretation.model import (
    MAX_ALSO,
    MAX_ASKS,
    MAX_BACK,
    MAX_LITERAL,
    MAX_QUANTITY,
    MAX_SLOTS,
    Interpretation,
    InterpretedAsk,
    Mode,
    Slot,
    Span,
)
from phylactery_understanding.language.own_words import MAX_SPANS, refuse_bad_spans, refuse_bad_starts
from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

MAX_WORDS = 100_000
"""Maximum characters of a user's words."""
MAX_KEEP_US = 3_600 * 1_000_000
"""Maximum time for which others may continue an ended task."""
MAX_SHOWN_BYTES = 1024 * 1024
"""Maximum bytes of a call's arguments, and of its result."""


def _fits(text: str) -> str:
    if len(text) > MAX_SHOWN_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_SHOWN_BYTES:
        raise ValueError(f"holds more than {MAX_SHOWN_BYTES:,} bytes in UTF-8; send its beginning")
    return text


_Shown = Annotated[str, AfterValidator(_fits), Field(repr=False)]


class SpanInput(EdgeModel):
    """A span of the words, with its text."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_LITERAL, repr=False)]
    start: Annotated[int, Field(ge=0, le=MAX_WORDS)]
    length: int
    back: Annotated[int, Field(ge=0, le=MAX_BACK)] = 0

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        """Refuse a length that differs from the text's. Raise ValueError."""
        if self.length != len(self.text):
            raise ValueError(f"is {self.length}, and text has {len(self.text)} characters")
        return self

    def span(self) -> Span:
        """Return the span as the grammar's type."""
        return Span(self.text, self.start, self.back)


class SlotInput(EdgeModel):
    """The words that form an argument's value."""

    argument: Annotated[str, Field(min_length=1, max_length=128)]
    value: SpanInput


class AskInput(EdgeModel):
    """One ask that a model found in the words."""

    tool: ToolName
    slots: Annotated[list[SlotInput], Field(max_length=MAX_SLOTS)]
    mode: Mode = Mode.NONE
    literal: SpanInput | None = None
    composed: bool = False
    quantity: Annotated[int, Field(ge=0, le=MAX_QUANTITY)]
    time: SpanInput | None = None
    also_time: Annotated[list[SpanInput], Field(max_length=MAX_ALSO, default_factory=list)]


class InterpretationInput(EdgeModel):
    """A model's interpretation of the words."""

    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
    model: Annotated[str, Field(pattern=r"^[^\x00-\x20\x7f]{1,256}$")]
    asks: Annotated[list[AskInput], Field(max_length=MAX_ASKS)]

    def interpretation(self) -> Interpretation:
        """Return the interpretation as the grammar's type."""
        return Interpretation(self.version, self.model, tuple(map(_ask, self.asks)))


def _ask(asked: AskInput) -> InterpretedAsk:
    return InterpretedAsk(
        tool=asked.tool,
        slots=tuple(Slot(one.argument, one.value.span()) for one in asked.slots),
        mode=asked.mode,
        content=asked.literal.span() if asked.literal is not None else None,
        composed=asked.composed,
        quantity=asked.quantity,
        time=asked.time.span() if asked.time is not None else None,
        also_time=tuple(one.span() for one in asked.also_time),
    )


class OwnSpanInput(EdgeModel):
    """A part of the words that the user wrote themselves, half-open."""

    start: int
    stop: int


class BeginInput(EdgeModel):
    """One request of a user; without own_spans all of the words are theirs, or none of them for a delegate."""

    request_id: Identifier
    thread_id: Identifier
    words: Annotated[str, Field(min_length=1, max_length=MAX_WORDS, repr=False)]
    continues_task_id: OptionalIdentifier = ""
    interpretation: InterpretationInput | None = None
    own_spans: Annotated[tuple[OwnSpanInput, ...], Field(max_length=MAX_SPANS)] = ()
    message_starts: Annotated[tuple[int, ...], Field(max_length=MAX_SPANS)] = ()

    @field_validator("own_spans")
    @classmethod
    def _apart_inside(cls, spans: tuple[OwnSpanInput, ...], info: ValidationInfo) -> tuple[OwnSpanInput, ...]:
        if "words" in info.data:
            refuse_bad_spans(info.data["words"], [(one.start, one.stop) for one in spans])
        return spans

    @field_validator("message_starts")
    @classmethod
    def _ascending_inside(cls, starts: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        if "words" in info.data:
            refuse_bad_starts(info.data["words"], starts)
        return starts

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the own spans as given."""
        return tuple((one.start, one.stop) for one in self.own_spans)


class ObserveInput(EdgeModel):
    """The result of one tool call; ``form`` is the form of the result text, None without a result."""

    task_id: Identifier
    tool_call_id: Identifier
    tool: ToolName
    arguments_json: _Shown = ""
    form: Literal["result_json", "result_text"] | None = None
    result_json: _Shown = ""
    result_text: _Shown = ""
    failed: bool = False
    run_id: OptionalIdentifier = ""
    partial: bool = False

    @property
    def text(self) -> str:
        """Return the result as it came."""
        return self.result_json if self.form == "result_json" else self.result_text


class EndInput(EdgeModel):
    """Which task ends, and for how long others may still continue it."""

    task_id: Identifier
    keep: Annotated[int, Field(ge=0, le=MAX_KEEP_US)] = 0
    """Microseconds."""


MAX_TEXT_BYTES = 1024 * 1024
MAX_TEXTS = 100


def _inspectable(text: str) -> str:
    return _fit_together([text])[0]


def _fit_together(texts: list[str]) -> list[str]:
    """Refuse texts that are too long in total, before they are processed."""
    if sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) > MAX_TEXT_BYTES:
        raise ValueError(f"a request holds at most {MAX_TEXT_BYTES:,} bytes of text in UTF-8")
    return texts


class OptionsInput(EdgeModel):
    """What to look for and what to return; empty kinds mean all."""

    kinds: Annotated[tuple[FindingKind, ...], Field(max_length=MAX_TEXTS)] = ()
    min_confidence: Confidence = Confidence.MEDIUM
    want_redacted: bool = False

    @property
    def wanted(self) -> Wanted:
        """Return the options as the inspection's type."""
        return Wanted(frozenset(self.kinds) or ALL_KINDS, self.min_confidence)


class InspectInput(EdgeModel):
    """One text."""

    text: Annotated[str, AfterValidator(_inspectable)]
    options: OptionsInput


class InspectBatchInput(EdgeModel):
    """Several texts."""

    texts: Annotated[list[str], Field(min_length=1, max_length=MAX_TEXTS), AfterValidator(_fit_together)]
    options: OptionsInput
