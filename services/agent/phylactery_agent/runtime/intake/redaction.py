"""Redaction at the edge, before anything is persisted: codes removed, secrets redacted, personal data named (ADR 26).

The person's original words stay available as evidence within the turn: where they differ from the stored text they are
sealed, as a code is, and removed when the turn ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, get_args

from phylactery_chassis.errors import InvalidArgument, Unavailable, Violation
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import GateRefusedError, GateUnavailableError, Inspected, Language
from phylactery_agent.ports.services import Services
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import asks_not_to_store, is_fixed_talk, parse_reply
from phylactery_agent.runtime.intake.authorship import Said, said_together
from phylactery_agent.runtime.storage.records import Owner, StoredTurn
from phylactery_agent.runtime.storage.sealing import Sealer, SealError

MASK = "________"
"""Eight underscores: the masked reply keeps the form of a reply, so that Router recognises it as one."""

_STRICT = expression(r"^(APROBAR|APPROVE)\s+([A-Za-z0-9_-]{6,})\s+([A-Za-z0-9_-]{6,})$")
"""The strict grammar of an approval reply."""

_GROUPS = r"((?:[A-Za-z2-7]{2,8}[ \pZ-]{1,3}){1,4}[A-Za-z2-7]{2,8})"
_IN_PARTS = expression(rf"^(APROBAR|APPROVE)\s+([A-Za-z0-9_-]{{6,}})\s+{_GROUPS}$")
"""The same with the code in groups, as people read one aloud."""
_TYPED = expression(rf"(?i)^(aprobar|approve)\s+(ap_[a-z2-7]{{26}})\s+({_GROUPS}|[a-z2-7]{{10}})$")
"""The same in either case: behind a complete id, ten letters are a code, even where they read as words.

RiskGate still checks it, so words taken for a code approve nothing.
"""
_BETWEEN = expression(r"[^A-Za-z2-7]+")
_CODE_CHARACTERS = 10

_CLOSE = expression(
    r"(?i)\b(aprobar|apruebo|approve|approved)([\s\pZ:,;]+ap_[A-Za-z0-9_-]+)[\s\pZ:,;]+([A-Za-z0-9_-]{6,})"
)
"""A near miss of the grammar: not a reply, but whatever is in the code's place must still not be stored."""

_HINT = expression(r"(?i)(?:ap_[a-z2-7]{26}|\b(?:aprob|aprueb|approv))")
"""Signs of an attempted reply: an approval id, or a word for yes."""

_SHAPE = expression(r"(?i)\b[a-z2-7]{10}\b")
"""The form of RiskGate's codes, in either case."""

_ALONE = expression(r"^[^\pL\pN]*[A-Za-z2-7]{10}[^\pL\pN]*$")
"""A single word in that form and nothing else."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its code, and the code, which is empty if the text is not a strict reply."""

    text: str
    code: str = field(default="", repr=False)


def mask(text: str) -> Masked:
    """Return the text in a form that may be stored, and the code of a strict approval reply."""
    found = _STRICT.match(text.strip())
    if found is not None and not found.group(3).lower().startswith("ap_"):
        verb, approval_id, code = (found.group(number) for number in (1, 2, 3))
        return Masked(f"{verb} {approval_id} {MASK}", code)
    whole = _TYPED.match(text.strip())
    found = whole or _IN_PARTS.match(text.strip())
    code = "" if found is None else _BETWEEN.sub("", str(found.group(3)))
    if found is not None and len(code) == _CODE_CHARACTERS and (whole or code.isupper() or not code.isalpha()):
        return Masked(f"{found.group(1).upper()} {found.group(2).lower()} {MASK}", code)
    kept = _CLOSE.sub(rf"\1\2 {MASK}", text)
    if next(_HINT.finditer(kept), None) is not None or _ALONE.match(kept) is not None:
        kept = _without_codes(kept)
    return Masked(kept)


def _without_codes(text: str) -> str:
    """Mask the words that have the form of a code; ten lower-case letters without a digit are an ordinary word."""
    parts, end = [], 0
    for found in _SHAPE.finditer(text):
        word = found.group()
        if word.isupper() or not word.isalpha():
            parts += [text[end : found.start()], MASK]
            end = found.end()
    return "".join([*parts, text[end:]])


_REPLY: Final = expression(r"^(?:(?:APROBAR|APPROVE)\s+ap_[a-z2-7]{26}\s+_{8}|(?:RECHAZAR|REJECT)\s+ap_[a-z2-7]{26})$")
"""A strict reply, masked, to an approval in RiskGate's naming: it contains no other words."""
HIDDEN: Final = "••••••"
_MASKED: Final = "secret:"
"""How a finding begins that is masked in what is stored, as «kind»; personal data stays."""
_TOLD: Final = ("words_redacted", "words_redacted_form")
"""What is stored instead of words said in a form with sensitive fields."""
_TEXT_REFUSED: Final = frozenset({"INVALID_REQUEST", "TOO_MANY_FINDINGS"})
_CODES: Final = " "
"""Separator between the codes of one reply; it occurs in no code and no id."""
_log = get_logger("edge")


@dataclass(frozen=True, slots=True)
class Taken:
    """A message in a form that may be stored, with the sealed values that only its turn may use.

    findings is a JSON list of the kinds found, each prefixed with its category, as in "personal:email". An inspected
    message has at least "[]": an empty string means that it was not inspected.
    """

    text: str
    findings: str
    do_not_store: bool
    sealed_code: bytes | None = field(default=None, repr=False)
    sealed_words: bytes | None = field(default=None, repr=False)


class Sanitizing:
    """Redaction of incoming texts."""

    def __init__(self, services: Services, sealer: Sealer) -> None:
        self._services, self._sealer = services, sealer

    async def take(
        self, owner: Owner, text: str, *, turn_id: str, also: Mapping[str, str] | None = None, hidden: bool = False
    ) -> Taken:
        """Return a text in a form that may be stored; ``also`` holds codes of other approvals a reply answers, by id.

        hidden keeps none of its words readable, unless they are a strict reply: its turn alone can unseal them.

        Raise Unavailable RISKGATE_UNAVAILABLE if it cannot be inspected: nothing of it is stored then, and the client,
        which still has it, sends it again. Raise InvalidArgument INVALID_REQUEST for a text that cannot be inspected as
        a whole.
        """
        masked = mask(text)
        looked = await self._look(owner, masked.text)
        shown = HIDDEN if hidden and parse_reply(masked.text) is None else looked.text
        differs = shown != masked.text
        codes = _CODES.join([masked.code, *(f"{name}:{code}" for name, code in (also or {}).items())])
        return Taken(
            text=shown,
            findings=json.dumps(
                [f"{_MASKED}{kind}" for kind in looked.secrets] + [f"personal:{kind}" for kind in looked.personal]
            ),
            do_not_store=asks_not_to_store(masked.text),
            sealed_code=self._sealer.seal(codes, turn_id=turn_id) if codes else None,
            sealed_words=self._sealer.seal(masked.text, turn_id=_words_of(turn_id)) if differs else None,
        )

    async def take_others(self, owner: Owner, text: str, *, hidden: bool) -> str:
        """Return what others wrote in a form that may be stored. Raise as take."""
        if not text or hidden:
            return HIDDEN if text else ""
        return (await self._look(owner, mask(text).text)).text

    async def _look(self, owner: Owner, text: str) -> Inspected:
        """Inspect a text, unless all of its words are known and there is nothing to find.

        So a greeting costs no call, and greetings and approval replies are accepted while RiskGate is unavailable.
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
        """Return the code of a reply, and those of the other approvals it answers, by id. Raise SealError."""
        if turn.sealed_code is None:
            return "", {}
        code, *others = self._sealer.open(turn.sealed_code, turn_id=turn.turn_id).split(_CODES)
        return code, {name: other for name, _, other in (one.partition(":") for one in others)}

    def words(self, turn: StoredTurn) -> str:
        """Return the person's words with codes masked; if they cannot be unsealed any more, the stored text."""
        return self.said(turn).own

    def said(self, turn: StoredTurn) -> Said:
        """Return the person's words as words does, with what others wrote and where each message begins."""
        return said_together([(self._own(one), one) for one in (turn.parts or (turn,))])

    def _own(self, turn: StoredTurn) -> str:
        if turn.sealed_words is None:
            return turn.text
        try:
            return self._sealer.open(turn.sealed_words, turn_id=_words_of(turn.turn_id))
        except SealError as error:
            _log.error("a turn's own words are lost", reason=str(error), run_id=turn.run_id)
            return turn.text


def kinds_found(findings: str) -> Sequence[str]:
    """Return the kinds found in a message; empty if it was not inspected."""
    return [str(kind) for kind in json.loads(findings)] if findings else []


def masks_told(findings: str, language: Language, *, in_form: bool) -> str:
    """Return the sentence with which a reply begins to a message in which something was masked, '' if nothing was."""
    masks = [f"«{one.removeprefix(_MASKED)}»" for one in kinds_found(findings) if one.startswith(_MASKED)]
    return say(_TOLD[in_form], language, masks=", ".join(dict.fromkeys(masks))) if masks else ""


def without_masks_told(reply: str) -> str:
    """Return a reply without that sentence."""
    told, _, rest = reply.partition("\n\n")
    begins = (say(key, language, masks="\0").partition("\0")[0] for key in _TOLD for language in get_args(Language))
    return rest if rest and any(told.startswith(one) for one in begins) else reply


def _words_of(turn_id: str) -> str:
    """Return the sealing context of a turn's words, distinct from that of its code."""
    return f"{turn_id}.words"


def _away() -> Unavailable:
    return Unavailable(
        "RISKGATE_UNAVAILABLE",
        "RiskGate does not answer, so nothing was done and nothing of the message is kept; send it again in a moment",
        metadata={"service": "riskgate"},
    )
