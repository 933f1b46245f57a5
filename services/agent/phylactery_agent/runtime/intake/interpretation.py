"""Interpretation of a person's words by a model, before a task is opened with them.

The model is shown the words and the available tools, never a result, a memory, a profile or a file: the authors of
those must not influence what a person asked for. Values in its reply must be copied from the words or are rejected;
RiskGate checks every one of them again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Annotated, Final, Literal

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_understanding.interpretation.check import MAX_WORDS
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
from phylactery_understanding.interpretation.pasting import pasted
from phylactery_understanding.replies.answers import read_answer, says_to_do
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from phylactery_agent.ports import ModelBudgetError, ModelMessage, ModelUnavailableError
from phylactery_agent.ports.model import AnswerForm, Model
from phylactery_agent.tools.contract import ToolSpec

PROMPT: Final = "interpret-2"
"""The prompt's file name and version: a changed text gets a new name."""
MAX_REPLY: Final = 16_000
"""Maximum length of a reply that is parsed, in characters."""
NOT_AN_INTERPRETATION: Final = "NOT_AN_INTERPRETATION"
WORDS_NOT_THERE: Final = "WORDS_NOT_THERE"
_MAX_CATALOG: Final = 40_000
"""Maximum length of the tool list shown to the model, in characters; tools that do not fit are left out."""
_MAX_DESCRIPTION: Final = 300
_PASTED: Final = "[pasted text]"
_FENCES: Final = ("```json", "```")

_Text = Annotated[str, Field(min_length=1, max_length=MAX_LITERAL)]
_Name = Annotated[str, Field(min_length=1, max_length=128)]
Offered = Callable[[], Sequence[ToolSpec]]

_log = get_logger("interpreter")


class _Asked(BaseModel):
    """One request in the format the model writes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    tool: _Name
    slots: Annotated[dict[_Name, _Text | list[_Text]], Field(max_length=MAX_SLOTS)] = {}
    mode: Literal["", "add", "replace", "create", "remove"] = ""
    content: _Text | None = None
    composed: bool = False
    quantity: Annotated[int, Field(ge=0, le=MAX_QUANTITY)] = 1
    time: _Text | Annotated[list[_Text], Field(max_length=1 + MAX_ALSO)] | None = None


class _Reply(BaseModel):
    """A complete reply."""

    model_config = ConfigDict(extra="forbid", strict=True)
    asks: Annotated[list[_Asked], Field(max_length=MAX_ASKS)]


class UnusableReplyError(Exception):
    """The reply is not an interpretation, or contains words the person did not write. Holds a stable reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Interpreter:
    """The interpreter of one turn's words, which calls the turn's model."""

    def __init__(self, model: Model, offered: Offered, *, turn_id: str, seconds: float) -> None:
        """Take the run's model, the available tools, and the maximum wait of a turn in seconds."""
        self._model, self._offered, self._turn_id, self._seconds = model, offered, turn_id, seconds

    async def read(self, words: str, earlier: Sequence[str] = ()) -> Interpretation | None:
        """Return the model's interpretation, or None if it is not received in time or is unusable.

        ``earlier`` are the person's earlier messages, oldest first: the newest may refer to what they say.

        A turn continues without it: RiskGate then understands the words by its rules alone. Raise LeaseLostError and
        RunCancelledError, as every model call does.
        """
        tools = [spec for spec in self._offered() if spec.contract.effect != "read"]
        answers = read_answer(words) != "unclear" and not (earlier and says_to_do(words))
        if len(words) > MAX_WORDS or not tools or answers:
            return None
        try:
            return await self._asked(words, _recent(words, earlier), tools)
        except (ModelUnavailableError, ModelBudgetError, UnusableReplyError) as error:
            _log.info("a request is not interpreted", reason=error.reason)
        except TimeoutError:
            _log.info("a request is not interpreted", reason="TIMEOUT")
        return None

    async def _asked(self, words: str, earlier: Sequence[str], tools: Sequence[ToolSpec]) -> Interpretation:
        said = [ModelMessage("user", without_pasted(one)) for one in (*earlier, words)]
        messages = [ModelMessage("system", _told(tools)), *said]
        async with asyncio.timeout(self._seconds):
            reply = await self._model.reply(messages, key=f"interpret:{self._turn_id}", form=_form())
        if reply.calls or len(reply.text) > MAX_REPLY:
            raise UnusableReplyError(NOT_AN_INTERPRETATION)
        return read_reply(reply.text, words, reply.model, frozenset(spec.name for spec in tools), earlier)


def without_pasted(words: str) -> str:
    """Return the words with pasted text replaced by a placeholder."""
    shown, place = "", 0
    for start, stop in pasted(words):
        shown, place = f"{shown}{words[place:start]}{_PASTED}", stop
    return shown + words[place:]


def _recent(words: str, earlier: Sequence[str]) -> Sequence[str]:
    """Return the newest earlier messages, as many as RiskGate reads together."""
    found: list[str] = []
    room = MAX_WORDS - len(words)
    for one in [*earlier][: -MAX_BACK - 1 : -1]:
        room -= len(one)
        if room < 0:
            break
        found.insert(0, one)
    return found


def read_reply(text: str, words: str, model: str, tools: frozenset[str], earlier: Sequence[str] = ()) -> Interpretation:
    """Parse a reply into RiskGate's form, with every value located at its position in the words.

    A value that the words do not contain is looked up in the ``earlier`` messages, the newest of them first. Raise
    UnusableReplyError if the reply is not an interpretation, or a value is in none of the messages.
    """
    try:
        reply = _Reply.model_validate_json(_bare(text))
    except (ValidationError, ValueError, RecursionError):
        raise UnusableReplyError(NOT_AN_INTERPRETATION) from None
    if any(one.tool not in tools for one in reply.asks):
        raise UnusableReplyError(NOT_AN_INTERPRETATION)
    return Interpretation(PROMPT, _named(model), tuple(_ask(one, (words, *reversed(earlier))) for one in reply.asks))


def _named(model: str) -> str:
    """Return a model's name in a form RiskGate accepts, whatever its endpoint calls it."""
    return "".join(one if one.isprintable() and not one.isspace() else "_" for one in model[:256]) or "unnamed"


def _ask(asked: _Asked, messages: Sequence[str]) -> InterpretedAsk:
    """Return a request with its values located in the messages, the newest message first."""
    taken = [pasted(words) for words in messages]

    def place(value: str) -> Span:
        for back, words in enumerate(messages):
            start = _place(words, value, taken[back])
            if start is not None:
                taken[back].append((start, start + len(value)))
                return Span(value, start, back)
        raise UnusableReplyError(WORDS_NOT_THERE)

    # The longest is located first, because a short value occurs in many places. A recurrence may lie within the time.
    times = _listed(asked.time)
    said = [one for one in _values(asked) if one[0] == _TIME or not any(one[1] in time for time in times)]
    values = sorted(said, key=lambda one: -len(one[1]))
    found = [(name, place(value)) for name, value in values]
    when = sorted((span for name, span in found if name == _TIME), key=lambda one: (one.back, one.start))
    return InterpretedAsk(
        tool=asked.tool,
        slots=tuple(Slot(name, span) for name, span in found if name not in {_CONTENT, _TIME}),
        mode=Mode(asked.mode),
        content=next((span for name, span in found if name == _CONTENT), None),
        composed=asked.composed and asked.content is None,
        quantity=asked.quantity,
        time=next(iter(when), None),
        also_time=tuple(when[1:]),
    )


_CONTENT: Final = "\x00content"
_TIME: Final = "\x00time"


def _values(asked: _Asked) -> Iterator[tuple[str, str]]:
    for name, value in asked.slots.items():
        yield from ((name, one) for one in _listed(value))
    if asked.content is not None:
        yield _CONTENT, asked.content
    yield from ((_TIME, one) for one in _listed(asked.time))


def _listed(value: str | list[str] | None) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _place(words: str, value: str, taken: Sequence[tuple[int, int]]) -> int | None:
    """Return the position of a value in the words outside the taken ranges, preferring whole words."""
    places = [
        at
        for at in _all_places(words, value)
        if not any(at < stop and start < at + len(value) for start, stop in taken)
    ]
    whole = [at for at in places if not _is_part(words, at, at + len(value))]
    return next(iter(whole or places), None)


def _all_places(words: str, value: str) -> Iterator[int]:
    at = words.find(value)
    while at >= 0:
        yield at
        at = words.find(value, at + 1)


def _is_part(words: str, start: int, stop: int) -> bool:
    before, after = words[start - 1 : start] if start else "", words[stop : stop + 1]
    return (before.isalnum() and words[start].isalnum()) or (after.isalnum() and words[stop - 1].isalnum())


def _bare(text: str) -> str:
    """Return a reply without the code fence that some models put around JSON."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = next(bare.removeprefix(fence) for fence in _FENCES if bare.startswith(fence))
        return bare.removesuffix("```").strip()
    return bare


def _told(tools: Sequence[ToolSpec]) -> str:
    lines: list[str] = []
    room = _MAX_CATALOG
    for spec in tools:
        line = json.dumps(_described(spec), ensure_ascii=False)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return _prompt() + "\n".join(lines)


def _described(spec: ToolSpec) -> dict[str, object]:
    properties = spec.schema.get("properties", {})
    arguments = {
        name: str(about.get("description") or about.get("type") or "")[:_MAX_DESCRIPTION]
        if isinstance(about, dict)
        else ""
        for name, about in properties.items()
    }
    return {"tool": spec.name, "does": spec.descriptions["en"][:_MAX_DESCRIPTION], "arguments": arguments}


@lru_cache(maxsize=1)
def _form() -> AnswerForm:
    return AnswerForm("interpretation", _Reply.model_json_schema())


@lru_cache(maxsize=1)
def _prompt() -> str:
    return files(__package__).joinpath("prompts", f"{PROMPT}.txt").read_text(encoding="utf-8")
