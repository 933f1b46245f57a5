"""Parsing of endpoint answers: tolerant of differences between endpoints, strict about invalid replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from phylactery_agent.llm_client.errors import MALFORMED, ModelFault
from phylactery_agent.llm_client.reasoning import read

MAX_CALLS: Final = 64
_MAX_NAME: Final = 128
_MAX_WORD: Final = 64
_MAX_TOKENS: Final = 1_000_000_000
_BYTES_PER_TOKEN: Final = 3
_AT_THE_LIMIT: Final = ("length", "max_tokens")
"""Reasons to end of a reply that its token limit cut off."""
_PARTS: Final = (re.compile(r"[^.!?…\n]*(?:[.!?…\n]+|$)"), re.compile(r"\S+\s*"))
"""Sentences and lines, and words, of which a loop consists."""
_LONGEST_LOOP: Final = 12
_SHORTEST_LOOP: Final = 12
"""The parts, and the characters, of what a loop repeats: "ha ha ha" is none."""
_REPEATED, _REPEATED_TO_THE_LIMIT = 8, 3
"""How often it is there at least."""
_SPOKEN: Final = (None, "text", "output_text")
"""The types of a content's parts that are meant to be read: others hold reasoning."""
_REASONING: Final = ("reasoning_content", "reasoning", "thinking")
"""The fields in which endpoints send reasoning: only their size is read."""


@dataclass(frozen=True, slots=True)
class HeardCall:
    """A tool call as written by a model: a name, and the text of its arguments."""

    name: str
    raw: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A complete reply. Token counts are None if the endpoint did not report them.

    text holds no reasoning; it is empty if the model wrote nothing else. size_bytes is what was written in all.
    """

    text: str
    calls: tuple[HeardCall, ...]
    finish_reason: str
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    size_bytes: int = field(default=0, compare=False)


def estimated_tokens(size_bytes: int) -> int:
    """Return an estimate of the tokens in a text of this many bytes, rather too high than too low."""
    return -(-size_bytes // _BYTES_PER_TOKEN)


def clean(text: str) -> str:
    """Return a text as valid Unicode: split surrogate pairs are joined, lone ones replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def arguments_of(raw: str) -> dict[str, Any] | None:
    """Return the object encoded in a call's text, or None if it encodes none, or two at once."""
    if not raw.strip():
        return {}  # some endpoints write this for a tool without arguments
    try:
        found = json.loads(raw, object_pairs_hook=_unique, parse_constant=_refused)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def words_of(content: Any) -> str:
    """Return the text of a content, which some endpoints send in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") in _SPOKEN]
        return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return ""


def text_of_arguments(arguments: Any) -> str:
    """Return arguments as text; some endpoints send them as an object."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Return True if its arguments are complete: a name that follows with more begins another call."""
        return any(self.pieces) and arguments_of("".join(self.pieces)) is not None


class Assembly:
    """A reply assembled from whole answers or from stream events."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._thought_bytes = 0
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._finish, self._model = "", ""
        self._usage: tuple[int | None, int | None] = (None, None)

    @property
    def text(self) -> str:
        """Return the text so far, without reasoning and without an end that may become a mark of it."""
        return read(self._written(), more=not self.finished).spoken

    @property
    def reasons_unmarked(self) -> bool:
        """Return True if the text holds reasoning whose beginning nothing marked: only its end shows what it was."""
        return read(self._written()).unmarked

    def _written(self) -> str:
        return clean("".join(self._texts))

    @property
    def size_bytes(self) -> int:
        """Return the approximate size of the reply so far."""
        pieces = [*self._texts, *(piece for call in self._calls for piece in (call.name, *call.pieces))]
        return self._thought_bytes + sum(len(piece.encode("utf-8", "replace")) for piece in pieces)

    @property
    def finished(self) -> bool:
        """Return True if the model reported that the reply is complete."""
        return bool(self._finish)

    def event(self, chunk: Any) -> bool:
        """Add one stream event; return True if the text grew. Raise ModelFault for an invalid event."""
        choice = self._take(chunk)
        if choice is None:
            return False
        delta = choice.get("delta")
        if delta is None:
            delta = {}
        if not isinstance(delta, dict):
            raise ModelFault(MALFORMED, began=True)
        grown = self._say(delta)
        for part in _calls_in(delta):
            self._grow(part)
        return grown

    def whole(self, answer: Any) -> None:
        """Add an unstreamed answer. Raise ModelFault for an invalid one."""
        choice = self._take(answer)
        message = None if choice is None else choice.get("message")
        if not isinstance(message, dict):
            raise ModelFault(MALFORMED, began=True)
        self._say(message)
        for part in _calls_in(message):
            call = self._new()
            _fill(call, part)

    def heard(self) -> Heard:
        """Return the reply. Raise ModelFault if it holds nothing at all, or a call has no name."""
        text, calls = self._written(), tuple(HeardCall(call.name, clean("".join(call.pieces))) for call in self._calls)
        if (not text and not calls and not self._thought_bytes) or any(
            not 0 < len(call.name) <= _MAX_NAME for call in calls
        ):
            raise ModelFault(MALFORMED, began=True)
        text = without_loop(read(text).spoken, is_cut=self._finish in _AT_THE_LIMIT)
        return Heard(text, calls, self._finish or "stop", self._model, *self._usage, size_bytes=self.size_bytes)

    def _take(self, body: Any) -> Mapping[str, Any] | None:
        """Read the fields common to events and whole answers; return the choice, if there is one."""
        if not isinstance(body, dict):
            raise ModelFault(MALFORMED, began=True)
        model, usage, choices = body.get("model"), body.get("usage"), body.get("choices")
        if isinstance(model, str):
            self._model = clean(model)[:256]
        if isinstance(usage, dict):
            self._usage = (_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))
        if choices is None or choices == []:
            return None
        if not isinstance(choices, list) or not isinstance(choices[0], dict):
            raise ModelFault(MALFORMED, began=True)
        finish = choices[0].get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = clean(finish)[:_MAX_WORD]
        return choices[0]

    def _say(self, message: Mapping[str, Any]) -> bool:
        for name in _REASONING:
            if isinstance(thought := message.get(name), str):
                self._thought_bytes += len(thought.encode("utf-8", "replace"))
        words = words_of(message.get("content")) or words_of(message.get("refusal"))
        if words:
            self._texts.append(words)
        return bool(words)

    def _grow(self, part: Mapping[str, Any]) -> None:
        """Add a piece of a call. Endpoints number calls, or do not, or use one number for all and an id for each."""
        index, own = part.get("index"), part.get("id")
        call = self._by_index.get(index) if isinstance(index, int) else (self._calls[-1] if self._calls else None)
        named = bool(part["function"].get("name"))
        other = isinstance(own, str) and own != "" and call is not None and call.id not in ("", own)
        again = named and call is not None and call.whole and bool(part["function"].get("arguments"))
        if (
            call is None
            or (other and named)
            or again
            or (not isinstance(index, int) and not own and named and call.name)
        ):
            call = self._new()
            if isinstance(index, int):
                self._by_index[index] = call
        _fill(call, part)

    def _new(self) -> _Call:
        if len(self._calls) == MAX_CALLS:
            raise ModelFault(MALFORMED, began=True)
        call = _Call()
        self._calls.append(call)
        return call


def without_loop(text: str, *, is_cut: bool) -> str:
    """Return a text without the repetitions it ends in: a model that loops says the same until its token limit.

    What is repeated stays once. A text that was not cut off needs more repetitions: a refrain may be meant. JSON and
    code stay as they are.
    """
    if text.lstrip().startswith(("{", "[")) or "```" in text:
        return text
    for pattern in _PARTS:
        parts = [one for one in pattern.findall(text) if one.strip()]
        if (end := _before_loop([" ".join(one.split()).casefold() for one in parts], is_cut=is_cut)) is not None:
            return "".join(parts[:end]).strip()
    return text


def _before_loop(said: Sequence[str], *, is_cut: bool) -> int | None:
    """Return how many parts of a text are left without the loop that it ends in, None if it ends in none."""
    least = _REPEATED_TO_THE_LIMIT if is_cut else _REPEATED
    for size in range(1, min(_LONGEST_LOOP, len(said) // least) + 1):
        # the last part of a text that was cut off is the beginning of another one
        before = said[-1 - size]
        stop = len(said) - (is_cut and before != said[-1] and before.startswith(said[-1]))
        begin = stop
        while begin > size and said[begin - 1] == said[begin - 1 - size]:
            begin -= 1
        if stop - begin >= size * (least - 1) and sum(map(len, said[stop - size : stop])) >= _SHORTEST_LOOP:
            return begin
    return None


def _fill(call: _Call, part: Mapping[str, Any]) -> None:
    function, own = part["function"], part.get("id")
    name = function.get("name")
    if isinstance(own, str) and not call.id:
        call.id = own
    if isinstance(name, str) and not call.name:
        call.name = clean(name)
    call.pieces.append(text_of_arguments(function.get("arguments")))


def _calls_in(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the calls, or pieces of them, each with its function object."""
    calls = message.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise ModelFault(MALFORMED, began=True)
    made = [{**call, "function": call.get("function") or {}} for call in calls]
    if not all(isinstance(call["function"], dict) for call in made):
        raise ModelFault(MALFORMED, began=True)
    return made


def _count(number: Any) -> int | None:
    """Return a token count, or None if it is missing or invalid."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= _MAX_TOKENS:
        return None
    return number
