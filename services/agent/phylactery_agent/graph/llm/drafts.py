"""Interpretation of a model's answer: a plan, calls, a question, an answer, or a list of problems.

Only a tool's name, its arguments and a goal are read. Anything else it says about approvals, permits, hashes or
completed steps is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from phylactery_agent.graph.core.guards import MAX_TOOL_CALLS
from phylactery_agent.graph.llm import proposals
from phylactery_agent.graph.llm.conversation import clean
from phylactery_agent.i18n.texts import shortened
from phylactery_agent.ports import Language
from phylactery_agent.ports.model import ModelReply, ModelTool
from phylactery_agent.tools.contract import ToolSpec

MAX_DRAFTED: Final = MAX_TOOL_CALLS
"""Maximum number of steps of one plan: a run cannot make more calls anyway."""
_MAX_PROBLEMS: Final = 8
_MAX_NAME: Final = 64
_CUT: Final = ("length", "max_tokens", "content_filter")
"""Reasons to end of a reply that is not whole: what it proposes may be a part of what was meant."""
_CUT_OFF: Final = "the answer was cut off before its end; make it shorter"
_QUOTED: Final = "a plan or call in it stands in what you were shown, so it is only a quotation; make calls of your own"
_SPOKEN_OF: Final = "a plan or call stands within other words; write it alone, or answer in plain words without it"
_FENCES: Final = ("```json", "```")


@dataclass(frozen=True, slots=True)
class Drafted:
    """One step or call as written by a model; args is None if they are to be decided later."""

    tool: str
    args: dict[str, Any] | None
    goal: str


@dataclass(frozen=True, slots=True)
class Draft:
    """The meaning of an answer: exactly one field is set, or problems explains why none is."""

    steps: tuple[Drafted, ...] = ()
    answer: str = ""
    question: str = ""
    problems: tuple[str, ...] = ()


def model_tools(specs: Mapping[str, ToolSpec], language: Language) -> list[ModelTool]:
    """Return the tools in the form offered to a model."""
    return [ModelTool(spec.name, spec.descriptions[language], spec.schema) for spec in specs.values()]


def looks_like_json(text: str) -> bool:
    """Return True if an answer starts like JSON and is therefore not meant for the person."""
    return text.lstrip().startswith(("{", "[", "```"))


def read_plan(reply: ModelReply, specs: Mapping[str, ToolSpec], shown: str = "") -> Draft:
    """Read the answer to a planning request: calls, or one object in its text, whatever is written around it.

    ``shown`` is what the model was shown: a plan that stands in it is quoted, and never carried out.
    """
    if reply.calls:
        return read_calls(reply, specs)
    text = clean(reply.text).strip()
    found = proposals.find(text)
    if not text or (found and (problem := _unfit(reply, found))):
        return Draft(problems=(problem if text else "the answer is empty",))
    quoted = proposals.are_quoted(found.objects, shown)
    if any(quoted):
        return Draft(answer=text) if all(quoted) and not found.alone else Draft(problems=(_QUOTED,))
    if found.spoken_of:
        return Draft(problems=(_SPOKEN_OF,))
    if found.objects:
        return _read_objects(found.objects, specs)
    return _read_json(text) if looks_like_json(text) else _answer(text, specs)


def read_calls(reply: ModelReply, specs: Mapping[str, ToolSpec], shown: str = "") -> Draft:
    """Read the calls of an answer; without calls, its text is the answer, unless the text is nothing but calls.

    A call in the text that stands in what the model was shown is a part of the answer.
    """
    if not reply.calls:
        text = clean(reply.text).strip()
        found = proposals.find(text)
        if not text or (found and (problem := _unfit(reply, found))):
            return Draft(problems=(problem if text else "the answer is empty",))
        quoted = proposals.are_quoted(found.objects, shown)
        if any(quoted):
            return Draft(answer=text) if all(quoted) else Draft(problems=(_QUOTED,))
        if found.objects and (found.spoken_of or not (found.alone and all(map(proposals.is_call, found.objects)))):
            return Draft(problems=("its text holds a plan or a call; make the call, or answer in plain words",))
        return _read_objects(found.objects, specs) if found.objects else _answer(text, specs)
    if reply.finish_reason in _CUT:
        return Draft(problems=(_CUT_OFF,))
    steps: list[Drafted] = []
    problems: list[str] = []
    for number, call in enumerate(reply.calls, 1):
        if call.arguments is None:
            problems.append(f"call {number}, {shortened(call.name, _MAX_NAME)}: its arguments are no JSON object")
            continue
        problems += [f"call {number}, {problem}" for problem in misfits(call.name, call.arguments, specs)]
        steps.append(Drafted(call.name, call.arguments, ""))
    return _draft(steps, problems)


def misfits(tool: str, args: dict[str, Any], specs: Mapping[str, ToolSpec]) -> list[str]:
    """Return why a call cannot be proposed, empty if it can; RiskGate decides the rest."""
    spec = specs.get(tool)
    if spec is None:
        return [f"{shortened(tool, _MAX_NAME)}: there is no such tool"]
    nulls = {name for name, value in args.items() if value is None and _is_superfluous(spec.schema, name)}
    if meant := sorted(name for name in nulls if any(place.split("/")[1] == name for place in spec.contract.controls)):
        return [f"{tool}: {name} may not be null; leave it out" for name in meant]
    args = {name: value for name, value in args.items() if name not in nulls}  # as RiskGate leaves them out
    try:
        spec.args_model.model_validate(args)
    except ValidationError as error:
        wrong = error.errors(include_input=False, include_url=False, include_context=False)
        return [f"{tool}: {'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in wrong]
    except RecursionError:
        return [f"{tool}: the arguments are nested too deep"]
    return [f"{tool}: {problem}" for problem in _unlike_schema(spec.schema, args)]


def _is_superfluous(schema: Mapping[str, Any], name: str) -> bool:
    """Return True if an argument is optional and takes no null."""
    known = schema.get("properties", {}).get(name)
    if not isinstance(known, Mapping) or name in schema.get("required", ()):
        return False
    forms = [known, *known.get("anyOf", ()), *known.get("oneOf", ())]
    kinds = [form.get("type") for form in forms if isinstance(form, Mapping)]
    return any(kinds) and not any(kind == "null" or (isinstance(kind, list) and "null" in kind) for kind in kinds)


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _unlike_schema(schema: Mapping[str, Any], args: Mapping[str, Any]) -> list[str]:
    """Return which arguments violate the first level of the schema, for tools whose Pydantic model accepts anything.

    This gives a model early feedback; RiskGate validates the whole schema in any case.
    """
    properties = schema.get("properties", {})
    problems = [f"{name}: is missing" for name in schema.get("required", ()) if name not in args]
    if schema.get("additionalProperties") is False:
        problems += [
            f"{shortened(name, _MAX_NAME)}: there is no such argument" for name in args if name not in properties
        ]
    for name, value in args.items():
        known = properties.get(name)
        wanted = known.get("type") if isinstance(known, Mapping) else None
        names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
        if names and not any(_is(value, one) for one in names):
            problems.append(f"{name}: is no {' or '.join(map(str, names))}")
    return problems


def _is(value: Any, wanted: Any) -> bool:
    kinds = _TYPES.get(wanted) if isinstance(wanted, str) else None
    if kinds is None:
        return True
    if isinstance(value, bool):
        return bool(wanted == "boolean")
    if isinstance(value, float) and wanted == "integer":
        return value.is_integer()
    return isinstance(value, kinds)


def _draft(steps: list[Drafted], problems: list[str]) -> Draft:
    if len(steps) > MAX_DRAFTED:
        problems.append(f"{len(steps)} steps are too many; at most {MAX_DRAFTED} are taken")
    if problems:
        return Draft(problems=tuple(problems[:_MAX_PROBLEMS]))
    return Draft(steps=tuple(steps))


def _unfit(reply: ModelReply, found: proposals.Found) -> str:
    """Return why what a text proposes cannot be taken, empty if it can."""
    if reply.finish_reason in _CUT:
        return _CUT_OFF
    return "what it proposes in its text is not valid JSON" if found.broken else ""


def _answer(text: str, specs: Mapping[str, ToolSpec]) -> Draft:
    """Return words as the answer; a call in the notation of a program is none."""
    begins = text.lstrip("[` \n").partition("(")
    if begins[1] and begins[0] in specs:
        return Draft(problems=(f"{begins[0]}: the call is written as text; make it as a call",))
    return Draft(answer=text)


def _read_json(text: str) -> Draft:
    """Return what is wrong with a text that begins like JSON and proposes nothing."""
    try:
        value = json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return Draft(problems=("the answer is not valid JSON",))
    if not isinstance(value, dict):
        return Draft(problems=("the answer must be one JSON object",))
    return Draft(problems=("the JSON object needs steps, a list that is not empty, or a question",))


def _read_objects(objects: Sequence[dict[str, Any]], specs: Mapping[str, ToolSpec]) -> Draft:
    """Read one plan or question, or calls: each is a step, in order."""
    [first, *more] = objects
    if more and not all(map(proposals.is_call, objects)):
        return Draft(problems=("the answer holds more than one plan",))
    if proposals.is_plan(first):
        question, steps = first.get("question"), first.get("steps")
        if isinstance(question, str) and question.strip() and not steps:
            return Draft(question=clean(question).strip())
        if not isinstance(steps, list) or not steps:
            return Draft(problems=("the JSON object needs steps, a list that is not empty, or a question",))
    else:
        steps = [proposals.step_of(one) for one in objects]
    drafted: list[Drafted] = []
    problems: list[str] = []
    for number, step in enumerate(steps, 1):
        found, wrong = _read_step(step, specs)
        problems += [f"step {number}, {problem}" for problem in wrong]
        if found is not None:
            drafted.append(found)
    return _draft(drafted, problems)


def _read_step(step: Any, specs: Mapping[str, ToolSpec]) -> tuple[Drafted | None, list[str]]:
    if not isinstance(step, dict):
        return None, ["it must be a JSON object"]
    tool, args, goal = step.get("tool", ""), step.get("args"), step.get("goal", "")
    if not isinstance(tool, str) or not isinstance(goal, str):
        return None, ["tool and goal must be strings"]
    if args is None:
        if tool and tool not in specs:
            return None, [f"{shortened(tool, _MAX_NAME)}: there is no such tool"]
        return Drafted(tool, None, clean(goal)), []
    if not isinstance(args, dict):
        return None, ["args must be a JSON object or null"]
    return Drafted(tool, args, clean(goal)), misfits(tool, args, specs)


def _unfenced(text: str) -> str:
    for fence in _FENCES:
        if text.startswith(fence) and text.endswith("```"):
            return text.removeprefix(fence).removesuffix("```")
    return text
