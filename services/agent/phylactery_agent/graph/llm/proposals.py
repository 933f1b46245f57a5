"""Plans and tool calls in the text of a model's reply.

A model is asked for calls, or for one JSON object. Many write the object after a sentence or in a fence, and some write
a call as text, in the notation they were trained with. None of this is ever words for a person.

A plan that a model only speaks of is none: one within a sentence, in quotes or in marks of its own, and one that stands
in what the model was shown, which is a quotation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_OBJECTS: Final = 64
"""How many beginnings of objects are tried: a text of unclosed ones would be read from each of them to its end."""
_NAMES: Final = ("tool", "name", "function", "action")
_ARGUMENTS: Final = ("args", "arguments", "parameters", "action_input")
_NOTATION: Final = re.compile(
    r"(?i)(?<!`)(?:</?(?:[\w.-]{1,24}:)?(?:tool_calls?|function_calls?|tool_use|tool_code|invoke|parameter)"
    r"(?:\s[^<>]{0,80})?>"
    r"|<function=[\w.-]{1,64}>|</function>|<parameter=[\w.-]{1,64}>|<｜tool▁[^<>｜]{0,40}｜>|functools\["
    r"|<\|/?(?:tool|python_tag|plugin|action)[\w ]{0,40}\|?>|</?\|?tool_calls?\|?>"
    r"|\[/?TOOL_(?:CALLS?|REQUEST)\]|\[END_TOOL_REQUEST\]|(?m:^\s{0,8}Action Input:))"
)
"""Marks around calls, of families of models that write them as text; one in backticks is spoken of."""
_FENCE: Final = re.compile(r"```\w*")
_BEGUN: Final = re.compile(r"""\{[^{}]*["'](?:steps|tool|args|arguments|tool_calls)["']\s{0,8}:""")
"""A plan or call that is no valid JSON."""
_KEY: Final = re.compile(r"""\s{0,80}["']""")
"""The beginning of an object's first key."""
_MAYBE: Final = re.compile(r"\{|```(?:json|tool)|<[\w|/｜]*(?:tool|function|invoke|$)|\[/?TOOL_|functools\[")
"""Where a plan or a call may begin, in a text that is still arriving."""
_OBJECT: Final = "\0"
"""In place of an object, where the words around it are judged."""
_OWN_LINE: Final = re.compile(rf"(?:.*[:.!][*_]{{0,3}})?[\s\[,]*(?:{_OBJECT}[\s\],;]*)+")
"""A line of an object that is proposed: nothing else, or behind the end of a sentence."""
_TAG: Final = re.compile(r"(?:<|&lt;)(?P<end>/?)\s{0,4}(?P<name>[A-Za-z][\w.:-]{0,40})(?:\s[^<>]{0,80})?(?:>|&gt;)")
_OF_ANSWERS: Final = frozenset({"answer", "final_answer", "response", "output", "json", "plan"})
"""Names of marks around what is answered; what stands in others is thought, told or an example."""
_SPELLING: Final = re.compile(r"[\s\\]+")
"""What tells an object from the same one on several lines or within a string."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a text proposes. ``alone`` means that it holds nothing else than the objects and the marks around them.

    ``spoken_of`` means that an object stands within other words, so that it may not be what is proposed.
    """

    objects: tuple[dict[str, Any], ...] = ()
    broken: bool = False
    alone: bool = False
    spoken_of: bool = False

    def __bool__(self) -> bool:
        """Return True if anything is proposed, readable or not."""
        return self.broken or bool(self.objects)


def find(text: str) -> Found:
    """Return the plans and calls in a text; ``broken`` means that something begins as one and cannot be read.

    An object within one that cannot be read is no proposal: its plan may have been cut off.
    """
    objects: list[dict[str, Any]] = []
    rest, around, place, unreadable = list[str](), list[str](), 0, False
    for start, end, value in objects_of(text):
        if value is None:
            unreadable = True
            continue
        called = value.get("tool_calls")
        one = called if isinstance(called, list) and called else [value]
        proposed = [each for each in one if isinstance(each, dict) and (is_plan(each) or is_call(each))]
        objects += proposed
        rest.append(text[place:start])
        around += [text[place:start], _OBJECT if proposed else text[start:end]]
        place = end
    left = "".join([*rest, text[place:]])
    bare = _FENCE.sub("", _NOTATION.sub("", left)).strip(" \t\r\n,;")
    alone = not bare.strip("[], \t\r\n")
    cut = bool(objects) and (unreadable or (alone and bare.count("[") != bare.count("]")))
    broken = cut or _BEGUN.search(left) is not None or (not objects and _NOTATION.search(left) is not None)
    return Found(tuple(objects), broken, alone, _is_spoken_of("".join([*around, text[place:]])))


def objects_of(text: str) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """Yield the outermost JSON objects of a text with where each begins and ends, None for what only begins as one."""
    start, left = text.find("{"), MAX_OBJECTS
    while start >= 0 and left:
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            left, end = left - 1, start + 1
            if _KEY.match(text, end):
                yield start, end, None
        else:
            yield start, end, value
        start = text.find("{", end)


def are_quoted(objects: Sequence[Mapping[str, Any]], shown: str) -> list[bool]:
    """Return for each plan or call whether it, or a step of it, stands in what its author was shown."""
    before = _SPELLING.sub("", shown) if objects else ""
    return [any(_stands_in(before, call) for call in _calls(one)) for one in objects]


def _calls(one: Mapping[str, Any]) -> Sequence[Any]:
    steps = one.get("steps")
    return steps if isinstance(steps, list) and steps else [one]


def _stands_in(before: str, call: Any) -> bool:
    if not isinstance(call, dict) or call.get("args", call) is None:  # a step that is still open
        return False
    return any(_SPELLING.sub("", json.dumps(call, ensure_ascii=plain)) in before for plain in (False, True))


def _is_spoken_of(text: str) -> bool:
    """Return True if an object is not on lines of its own, or is between marks that are not those of an answer."""
    text = _FENCE.sub("", _NOTATION.sub("", text))
    first, last = text.find(_OBJECT), text.rfind(_OBJECT)
    tags = [(tag["name"].lower(), bool(tag["end"]), tag.start()) for tag in _TAG.finditer(text)]
    begun = {name for name, end, at in tags if not end and at < last}
    if (begun - _OF_ANSWERS) & {name for name, end, at in tags if end and at > first}:
        return True
    lines = _TAG.sub("", text).split("\n")
    return any(_OBJECT in line and _OWN_LINE.fullmatch(line) is None for line in lines)


def readable(text: str) -> str:
    """Return the part of a text, which more may follow, before anything that may become a plan or a call."""
    begins = _MAYBE.search(text)
    return text if begins is None else text[: begins.start()]


def is_plan(value: Mapping[str, Any]) -> bool:
    """Return True if an object is a plan of steps, or a question and nothing else."""
    steps = value.get("steps")
    if isinstance(steps, list):
        return any(isinstance(step, dict) and "tool" in step for step in steps)
    return value.keys() == {"question"}


def is_call(value: Mapping[str, Any]) -> bool:
    """Return True if an object is a call: the name of a tool and its arguments, and little else."""
    return _named(value) is not None


def step_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call in the form of a plan's step."""
    named = _named(value)
    assert named is not None
    tool, args = named
    return {"tool": tool, "args": args}


def _named(value: Mapping[str, Any]) -> tuple[str, Any] | None:
    if isinstance(inner := value.get("function"), dict):
        return _named(inner)
    tool = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)
    args = next((found for name in _ARGUMENTS if (found := _object(value.get(name))) is not None), None)
    return None if tool is None or args is None else (tool, args)


def _object(value: Any) -> dict[str, Any] | None:
    """Return an object, also one that is written as a string."""
    if isinstance(value, str):
        try:
            value = _DECODER.decode(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refused)
