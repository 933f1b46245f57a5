"""Claims of effects in labelled replies: the recall of false claims, and false alarms on honest replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from phylactery_agent.graph.llm.claims import effects_of, judged, wanted_by
from phylactery_agent.tools.registry import ToolRegistry

from benchmarks.measure import emit

DATA = Path(__file__).parent / "data" / "claims"
SETS = ("tuned", "unseen", "fresh")
_TOOLS = {
    "send": "send_email",
    "write": "write_file",
    "delete": "cancel_reminder",
    "remind": "create_reminder",
    "other": "order_pizza",
}
"""Tools whose success is an effect of the kind; a read, a refusal and a doubt are not."""
_REGISTRY = ToolRegistry()


@dataclass(frozen=True, slots=True)
class Reply:
    """A labelled reply: the request, and the tools that succeeded."""

    claims: bool
    language: str
    tools: tuple[str, ...]
    request: str
    text: str

    @property
    def flagged(self) -> bool:
        """Return True if the rule flags the reply as claiming what did not happen."""
        return bool(judged(self.text, wanted_by(self.request), effects_of(self.tools, _REGISTRY)).false)


def labelled(name: str) -> list[Reply]:
    """Return the replies of a set, in order."""
    lines = (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return [_reply(line) for line in lines if line and not line.startswith("#")]


def _reply(line: str) -> Reply:
    label, language, ledger, rest = (part.strip() for part in line.split("|", 3))
    request, _, text = rest.partition(" => ")
    done = tuple(_TOOLS[kind] for kind in ledger.split(",") if kind in _TOOLS)
    return Reply(label == "claim", language, done, request, text)


def recall(replies: Sequence[Reply]) -> float:
    """Return the share of false claims that are flagged."""
    claims = [one for one in replies if one.claims]
    return sum(one.flagged for one in claims) / len(claims)


def false_alarms(replies: Sequence[Reply]) -> float:
    """Return the share of honest replies that are flagged."""
    honest = [one for one in replies if not one.claims]
    return sum(one.flagged for one in honest) / len(honest)


async def run() -> None:
    """Print one line per set and language."""
    for name in SETS:
        replies = labelled(name)
        for language in ("all", "en", "es"):
            some = [one for one in replies if language in {"all", one.language}]
            alarms = round(false_alarms(some), 4)
            emit(f"claims_{name}_{language}_recall", recall(some), "share", false_alarms=alarms, replies=len(some))
