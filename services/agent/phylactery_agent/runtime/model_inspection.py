"""What a model is shown, looked at by RiskGate at the last door before the wire, whichever graph put it together.

Messages were inspected when they were said and results when they were quoted; a profile, memories and what was said in
earlier turns come from another service. What a turn has had looked at is not paid for again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.models.question import Question
from phylactery_agent.ports import GateRefusedError, GateUnavailableError, Inspector, ModelUnavailableError

NOT_INSPECTED: Final = "MODEL_NOT_INSPECTED"
"""Why a model was not asked: nobody looked at what it would have been shown."""

_MARK: Final = "\x1e"
_BETWEEN: Final = f"\n\n{_MARK}\n\n"
"""Stands between the parts RiskGate looks at in one call, none of which has the mark in it."""
_BLOCKS: Final = re.compile(r"\n\n(?=<data )")
"""Where a block of quoted data begins: one that is new does not have the others looked at again."""
_BLOCK: Final = "\n\n"

_log = get_logger("models")


class ShownInspection:
    """Takes secrets out of what one turn shows to models. Lives as long as the turn, and so does what it knows."""

    def __init__(self, inspector: Inspector) -> None:
        self._inspector = inspector
        self._looked: dict[str, str] = {}

    async def checked(self, question: Question) -> Question:
        """Answers the question as it may go out: our own instructions as they are, the rest without secrets.

        Costs one call for all parts that are new in the turn. Raises ModelUnavailableError MODEL_NOT_INSPECTED where
        RiskGate does not answer or does not take a part: then nothing of the question goes out.
        """
        new = list(dict.fromkeys(part for part in _parts(question.messages) if part not in self._looked))
        if new:
            try:
                self._looked.update(await self._look(new))
            except (GateUnavailableError, GateRefusedError) as error:
                reason = error.reason if isinstance(error, GateRefusedError) else "RISKGATE_UNAVAILABLE"
                _log.warning("a model is not asked, for nobody inspected what it would be shown", reason=reason)
                raise ModelUnavailableError(NOT_INSPECTED, "RiskGate did not look at what is to be shown") from None
        return Question([self._message(message) for message in question.messages], question.tools)

    async def _look(self, parts: Sequence[str]) -> Mapping[str, str]:
        """Answers each part without its secrets: together in one call, alone where that does not tell them apart."""
        if len(parts) > 1 and not any(_MARK in part for part in parts):
            try:
                together = (await self._inspector.inspect(_BETWEEN.join(parts))).text.split(_BETWEEN)
            except GateRefusedError:  # too much at once
                together = []
            if len(together) == len(parts):
                return dict(zip(parts, together, strict=True))
        return {part: (await self._inspector.inspect(part)).text for part in parts}

    def _message(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if message["role"] == "system":
            return message
        shown = dict(message)
        if message["content"]:
            shown["content"] = _BLOCK.join(self._looked[part] for part in _BLOCKS.split(message["content"]))
        if called := message.get("tool_calls"):
            shown["tool_calls"] = [self._call(call) for call in called]
        return shown

    def _call(self, call: Mapping[str, Any]) -> Mapping[str, Any]:
        function = call["function"]
        return {**call, "function": {**function, "arguments": _object(self._looked[function["arguments"]])}}


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        if message["role"] == "system":
            continue
        if message["content"]:
            yield from _BLOCKS.split(message["content"])
        for call in message.get("tool_calls", ()):
            yield call["function"]["arguments"]


def _object(arguments: str) -> str:
    """Answers arguments an endpoint takes: none, where what was taken out took the form of an object with it."""
    try:
        return arguments if isinstance(json.loads(arguments), dict) else "{}"
    except ValueError:
        return "{}"
