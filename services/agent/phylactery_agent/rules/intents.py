"""Classification of a message into language, intent and pathway, once at the edge; Router only dispatches on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from phylactery_understanding.replies.talk import read_talk
from phylactery_understanding.requests.parser import parse

from phylactery_agent.ports import Language
from phylactery_agent.rules.examples import likeness
from phylactery_agent.rules.expressions import detect_language, expression
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.recognition.recognizer import needs_no_tool, recognize
from phylactery_agent.tools.registry import ToolRegistry

_APPROVE = expression(r"^(?:APROBAR|APPROVE)\s+([A-Za-z0-9_-]{6,})\s+([A-Za-z0-9_-]{6,})$")
_REJECT = expression(r"^(?:RECHAZAR|REJECT)\s+([A-Za-z0-9_-]{6,})$")


@dataclass(frozen=True, slots=True)
class ApprovalReply:
    """A strict reply without its code: the stored text is masked, and the real code comes with the turn."""

    verb: Literal["approve", "reject"]
    approval_id: str


def parse_reply(text: str) -> ApprovalReply | None:
    """Return the strict reply in a text, or None for any other text."""
    stripped = text.strip()
    if found := _APPROVE.match(stripped):
        return ApprovalReply("approve", found.group(1))
    if found := _REJECT.match(stripped):
        return ApprovalReply("reject", found.group(1))
    return None


IntentName = Literal["conversation", "task", "approval_reply"]
TalkKind = Literal["help", "thanks", "farewell", "greeting", "fine", "listening", "empty"]
APPROVAL_REPLY: Final = "approval_reply"
"""The intent of a strict reply to an approval."""
TASK: Final = "task"
"""The intent of words that request an action."""
TOOL_PATHWAY: Final = "tool_intent"
"""The pathway for requests."""
FAST_PATHWAY: Final = "text_fast_path"
"""The pathway for conversation, on which no tool is proposed."""
APPROVAL_DECIDED: Final = "approval_decided"
"""The intent of a turn without a person's message: the approval was decided at RiskGate, or it expired."""

_THANKS: Final = expression(
    r"(?i)^[¡\s]*(?:(?:muchas\s+|mil\s+)?gracias|(?:thanks?(?:\s+you)?|thx|ty|cheers)(?:\s+(?:so|very)\s+much|\s+a\s+lot)?)"
    r"(?:\s+.{1,40}|,\s+(?:you['’]?re|you\s+are|that['’]?s|that\s+was|eres|perfect|great|genial|perfecto|qu[eé]\s+bien)"
    r"(?:\s+\pL+){0,3})[\s.!?…]*$"
)
"""Thanks with free words after it: thanks for the file."""
_NOT_STORED: Final = (
    r"no\s+(?:guardes|almacenes|registres|recuerdes)\s+(?:nada\s+de\s+)?(?:esto|este\s+mensaje|lo\s+que\s+te\s+digo)"
    r"|(?:do\s+not|don['’]?t)\s+(?:store|keep|save|remember)\s+(?:any(?:thing)?\s+of\s+)?(?:this(?:\s+message)?)"
)
_DO_NOT_STORE = expression(r"(?i)(?:^|[\s.,;:(¡])(?:" + _NOT_STORED + r")(?:$|[\s.,;:!)])")
_STORE_PHRASE = expression(
    r"(?i)^[\s¡(]*(?:" + _NOT_STORED + r")[\s.,;:!)]*"
    r"|[\s.,;:(¡]*(?:(?:y|pero|and|but)\s+)?(?:" + _NOT_STORED + r")[\s.!)]*$"
)
_CONTINUE = expression(
    r"(?i)^[\s¡]*(?:contin[uú]a|continuar|sigue|seguir|adelante|s[ií]|continue|go\s+on|go\s+ahead|yes|proceed)[\s.!]*$"
)


@dataclass(frozen=True, slots=True)
class Intent:
    """The classification of a message."""

    language: Language
    intent: IntentName
    pathway: str
    reasons: tuple[str, ...] = ()
    """Stable codes for why the message has this pathway."""


def classify(text: str, tools: ToolRegistry, fallback: Language = "es") -> Intent:
    """Return language, intent and pathway of a message; fallback is used if the words do not indicate a language."""
    language = detect_language(text, fallback)
    if parse_reply(text) is not None:
        return Intent(language, APPROVAL_REPLY, TOOL_PATHWAY, ("APPROVAL_REPLY",))
    if read_request(text, tools).clauses:
        return Intent(language, TASK, TOOL_PATHWAY, ("REQUEST",))
    if talk_kind(text) is not None:
        return Intent(language, "conversation", FAST_PATHWAY, ("SMALL_TALK",))
    like = likeness(text, tools)
    foreign = like.is_tool or any(tools.source_of(spec.name).startswith("mcp") for spec in tools.offered())
    if like.is_talk or (needs_no_tool(recognize(text), surely=foreign) and not _asks_for_work(text)):
        # a model answers, and needs no tool for it
        return Intent(language, TASK, FAST_PATHWAY, ("TALK_EXAMPLE",))
    return Intent(language, TASK, TOOL_PATHWAY, ("TOOL_EXAMPLE" if like.is_tool else "NO_SMALL_TALK",))


_WORK: Final = frozenset(
    {
        *("send", "write", "add", "append", "delete", "remove", "cancel", "remind", "search", "copy", "move"),
        *("rename", "open", "buy", "pay", "book", "order", "create", "set", "change", "schedule"),
    }
)
"""What verbs mean that ask for more than an answer."""


def _asks_for_work(text: str) -> bool:
    """Return True if a message asks for something with a verb that a tool may serve: send something funny to Marta."""
    meanings = [ask.verb.meanings for ask in parse(text).asks]
    return any(not one.isdisjoint(_WORK) and "tell" not in one for one in meanings)


def talk_kind(text: str) -> TalkKind | None:
    """Return the kind of small talk in a text, or None for any other text."""
    if not text.strip():
        return "empty"
    talk = read_talk(text)
    if talk is not None:
        return talk.kind
    return "thanks" if _THANKS.match(text) else None


def help_topic(text: str) -> str:
    """Return what a text asks help about, or an empty string."""
    talk = read_talk(text)
    return talk.topic if talk is not None else ""


def is_fixed_talk(text: str) -> bool:
    """Return True if a text consists of known words only, with no free part, so that it cannot contain a secret."""
    return not text.strip() or read_talk(text) is not None


def asks_not_to_store(text: str) -> bool:
    """Return True if a person asks that their message not be stored: "no guardes esto", "do not store this"."""
    return next((True for _ in _DO_NOT_STORE.finditer(text)), False)


def without_store_phrase(text: str) -> str:
    """Return a text without that phrase at its beginning or end, so that the rest can be understood."""
    return _STORE_PHRASE.sub("", text) if asks_not_to_store(text) else text


def is_continue(text: str) -> bool:
    """Return True if a text asks to continue what was begun."""
    return _CONTINUE.match(text) is not None
