"""The edge, before anything is persisted: codes are taken out, secrets redacted, personal data named (ADR 26).

What the person typed stays intact for evidence within the turn: where it differs from what is stored, it is sealed, as
a code is, and goes when the turn ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from phylactery_chassis.errors import InvalidArgument, Unavailable, Violation
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.ports import GateRefusedError, GateUnavailableError, Inspected
from phylactery_agent.runtime.masking import mask
from phylactery_agent.runtime.model import Owner, StoredTurn
from phylactery_agent.runtime.seal import Sealer, SealError
from phylactery_agent.runtime.services import Services
from phylactery_agent.static.expressions import expression
from phylactery_agent.static.intents import asks_not_to_store, is_fixed_talk

_REPLY: Final = expression(r"^(?:(?:APROBAR|APPROVE)\s+ap_[a-z2-7]{26}\s+_{8}|(?:RECHAZAR|REJECT)\s+ap_[a-z2-7]{26})$")
"""A strict reply, masked, to an approval as RiskGate names them: no other word is in it."""
_TEXT_REFUSED: Final = frozenset({"INVALID_REQUEST", "TOO_MANY_FINDINGS"})
_CODES: Final = " "
"""Stands between the codes of one reply; no code and no id has it."""
_log = get_logger("edge")


@dataclass(frozen=True, slots=True)
class Taken:
    """A message as it may be stored, and sealed beside it what only its turn may use.

    findings is a JSON list of the kinds found, each after its category, as in "personal:email". It is never empty: an
    empty one says that nobody looked.
    """

    text: str
    findings: str
    do_not_store: bool
    sealed_code: bytes | None = field(default=None, repr=False)
    sealed_words: bytes | None = field(default=None, repr=False)


class Sanitizing:
    """Takes texts in."""

    def __init__(self, services: Services, sealer: Sealer) -> None:
        self._services, self._sealer = services, sealer

    async def take(self, owner: Owner, text: str, *, turn_id: str, also: Mapping[str, str] | None = None) -> Taken:
        """Answers a text as it may be stored; also has the codes of other approvals that a reply answers, by id.

        Raises Unavailable RISKGATE_UNAVAILABLE where nobody can look at it: then nothing of it is kept, and the client,
        which still holds it, sends it again. InvalidArgument INVALID_REQUEST for a text nobody can look at whole.
        """
        masked = mask(text)
        looked = await self._look(owner, masked.text)
        differs = looked.text != masked.text
        codes = _CODES.join([masked.code, *(f"{name}:{code}" for name, code in (also or {}).items())])
        return Taken(
            text=looked.text,
            findings=json.dumps(
                [f"secret:{kind}" for kind in looked.secrets] + [f"personal:{kind}" for kind in looked.personal]
            ),
            do_not_store=asks_not_to_store(masked.text),
            sealed_code=self._sealer.seal(codes, turn_id=turn_id) if codes else None,
            sealed_words=self._sealer.seal(masked.text, turn_id=_words_of(turn_id)) if differs else None,
        )

    async def _look(self, owner: Owner, text: str) -> Inspected:
        """Looks at a text, unless every word of it is one we know and there is nothing to find.

        So a greeting costs no call, and it and an answer to an approval are taken in while RiskGate is away.
        """
        if is_fixed_talk(text) or _REPLY.match(text.strip()) is not None:
            return Inspected(text)
        try:
            return await self._services.inspector(owner).inspect(text)
        except GateUnavailableError:
            raise _away() from None
        except GateRefusedError as error:
            if error.reason not in _TEXT_REFUSED:
                _log.error("RiskGate inspects nothing for this agent", reason=error.reason)
                raise _away() from None
            raise InvalidArgument(
                "INVALID_REQUEST",
                "the text cannot be inspected as a whole; send it in parts",
                violations=[Violation("text", error.reason)],
            ) from None

    def codes(self, turn: StoredTurn) -> tuple[str, Mapping[str, str]]:
        """Return the code of a reply, and those of the other approvals it answers, by id. Raises SealError."""
        if turn.sealed_code is None:
            return "", {}
        code, *others = self._sealer.open(turn.sealed_code, turn_id=turn.turn_id).split(_CODES)
        return code, {name: other for name, _, other in (one.partition(":") for one in others)}

    def words(self, turn: StoredTurn) -> str:
        """Answers what the person typed, codes masked; as it was stored where the seal cannot be opened any more."""
        return "\n".join(self._own(one) for one in (turn.parts or (turn,)))

    def _own(self, turn: StoredTurn) -> str:
        if turn.sealed_words is None:
            return turn.text
        try:
            return self._sealer.open(turn.sealed_words, turn_id=_words_of(turn.turn_id))
        except SealError as error:
            _log.error("a turn's own words are lost", reason=str(error), run_id=turn.run_id)
            return turn.text


def kinds_found(findings: str) -> Sequence[str]:
    """Answers the kinds a message was found to hold; nothing where nobody looked."""
    return [str(kind) for kind in json.loads(findings)] if findings else []


def _words_of(turn_id: str) -> str:
    """Answers what a turn's words are sealed to: a sealed code can never be taken for them."""
    return f"{turn_id}.words"


def _away() -> Unavailable:
    return Unavailable(
        "RISKGATE_UNAVAILABLE",
        "RiskGate does not answer, so nothing was done and nothing of the message is kept; send it again in a moment",
        metadata={"service": "riskgate"},
    )
