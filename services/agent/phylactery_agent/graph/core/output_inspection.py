"""Inspection of text before it goes to the person or to a model; uninspected text is not quoted.

A reply made up only of built-in sentences and of the person's own words, which were inspected on arrival, needs no
RiskGate call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from phylactery_chassis.util.crypto import sha256

from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import GateRefusedError, GateUnavailableError, Inspected, Told, TurnContext

NOT_INSPECTED = "NOT_INSPECTED"
SECRETS_REDACTED = "SECRETS_REDACTED"
PERSONAL_DATA = "PERSONAL_DATA"

Direction = Literal["in", "out", "result"]
Meant = Callable[[str], Awaitable[str]]


async def look(context: TurnContext, text: str) -> Inspected | None:
    """Return a text as it may be sent, or None if RiskGate did not inspect it."""
    if not text:
        return Inspected("")
    if context.inspector is None:
        return None
    try:
        return await context.inspector.inspect(text)
    except (GateUnavailableError, GateRefusedError):
        return None


def findings_told(looked: Inspected | None, direction: Direction, *, about: str = "") -> list[Told]:
    """Return the events about an inspection: kinds, never a value. about names the related step or call."""
    found: list[tuple[str, tuple[str, ...]]] = [(NOT_INSPECTED, ())]
    if looked is not None:
        found = [(SECRETS_REDACTED, looked.secrets), (PERSONAL_DATA, looked.personal)]
    return [
        Told(
            "notice",
            {"reason": reason, "step_id": about, "kinds": list(kinds), "direction": direction},
            key=f"notice:{direction}:{reason}:{about}",
        )
        for reason, kinds in found
        if kinds or reason == NOT_INSPECTED
    ]


def said_findings(findings: Sequence[str]) -> list[Told]:
    """Return the events about findings in the person's message: kinds by category, never a value."""
    of = {category: tuple(sorted(_kinds(findings, category))) for category in ("secret", "personal")}
    return findings_told(Inspected("", of["secret"], of["personal"]), "in")


def _kinds(findings: Sequence[str], category: str) -> list[str]:
    return [kind for found, _, kind in (one.partition(":") for one in findings) if found == category]


async def checked_reply(state: AgentState, context: TurnContext, text: str, instead: str) -> str:
    """Return a reply that quotes foreign text with its secrets removed, or instead if the reply was not inspected."""
    language = state["language"]
    looked = await look(context, text)
    if told := findings_told(looked, "out"):
        await context.events.emit(*told)
    if looked is None:
        return "\n\n".join(part for part in (instead, say("not_inspected", language)) if part)
    return f"{looked.text}\n\n{say('secrets_redacted', language)}" if looked.secrets else looked.text


def joined(notes: list[str], quoted: dict[str, str], *, withheld: bool) -> str:
    """Return the notes as one text; withheld replaces each quoting note by its substitute."""
    chosen = [quoted.get(str(place), note) if withheld else note for place, note in enumerate(notes)]
    return "\n\n".join(note for note in chosen if note)


def quoting(state: AgentState, *notes: tuple[str, str | None]) -> dict[str, Any]:
    """Return the update that adds notes, each with its substitute, or None if the note quotes nothing."""
    before = len(state["notes"])
    instead = {str(before + place): other for place, (_, other) in enumerate(notes) if other is not None}
    return {
        "notes": [*state["notes"], *(note for note, _ in notes)],
        "quoted": {**state.get("quoted", {}), **instead},
    }


_EVERY = 400
"""Characters a text must grow by before the next inspection: deltas are events, and each costs a commit."""
_GROWTH = 8
"""A long text must grow by this fraction of itself, because each inspection covers all of it."""
_MOST = 20_000
"""Maximum number of streamed characters; a longer text is sent whole at the end."""
_HELD_BACK = 240
"""Trailing characters held back until more text follows: a secret is detectable only once enough of it is present."""
_OPENS = "-----BEGIN"


class Deltas:
    """Publisher of a model's streamed text as message_delta events, never past what RiskGate has inspected.

    Each inspection covers the whole text so far, so a secret that becomes visible later retracts text sent before it: a
    delta states where its text begins, and a client truncates its copy there first.
    """

    def __init__(self, context: TurnContext, message_id: str, *, meant: Meant | None = None) -> None:
        """Publish under message_id.

        Meant returns the part of a text that may be published, and None means all of it.
        """
        self._context, self._message_id, self._meant = context, message_id, meant
        self._looked = self._number = 0
        self._told = ""

    async def on_text(self, text: str) -> None:
        """Accept the text so far. A shorter text belongs to a new attempt, which starts over."""
        if len(text) < self._looked:
            self._looked = 0
        if len(text) > _MOST or len(text) - self._looked < max(_EVERY, self._looked // _GROWTH):
            return
        self._looked = len(text)
        looked = await look(self._context, text)
        if looked is not None:
            settled = _settled(looked.text)
            await self._tell(settled if self._meant is None else await self._meant(settled))

    async def _tell(self, text: str) -> None:
        if text == self._told:
            return
        offset = _common(self._told, text)
        grown = text[offset:]
        delta = {"message_id": self._message_id, "offset": offset, "text": grown}
        self._told = text
        key = f"delta:{self._number}:{offset}:{sha256(grown)}"
        self._number += 1
        await self._context.events.emit(Told("message_delta", delta, key=key))


def _settled(text: str) -> str:
    """Return the prefix of a text that later text can no longer turn into a secret."""
    end = max(len(text) - _HELD_BACK, 0)
    opened = text.find(_OPENS)
    if 0 <= opened < end:
        end = opened
    while end and not text[end - 1].isspace():
        end -= 1
    return text[:end]


def _common(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)
