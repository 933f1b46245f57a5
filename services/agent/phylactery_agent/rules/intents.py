"""Classification of a message into language, intent and pathway, once at the edge; Router only dispatches on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from phylactery_understanding.replies.answers import Answer, read_answer
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


WHICH: Final = "/which"
"""What stands for words that name some of several approvals and are not clear: they are asked about by name."""
_ANSWER_COMMAND: Final = expression(r"(?i)^\s*/(approve|reject|which)(\s+\S+)?\s*$")
"""The commands by which a chat answers; other clients send them as they were typed."""


_COMMANDS: Final[Mapping[str, Answer]] = {"approve": "yes", "reject": "no"}


def is_answer_command(text: str) -> bool:
    """Return True if a text is a command by which a chat answers, with or without what it names."""
    return _ANSWER_COMMAND.match(text) is not None


def answer_in(text: str) -> Answer:
    """Return what a text answers to exactly what its sender was shown: a clear yes or no, or /approve or /reject."""
    command = _ANSWER_COMMAND.match(text)
    if command is None or command.group(2):
        return read_answer(text)
    return _COMMANDS.get(command.group(1).lower(), "unclear")


def is_answer(text: str) -> bool:
    """Return True if a text answers something, and names nothing that it answers."""
    return is_answer_command(text) or read_answer(text) != "unclear"


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
_STORES_ES: Final = (
    r"(?:guard|almacen|registr|conserv|anot|memoric)(?:es|e|éis|eis|en)|recuerd(?:es|e|en)|recordéis|apunt(?:es|e|éis|en)"
    r"|archiv(?:es|e|éis|en)"
)
_STORES_EN: Final = r"(?:store|keep|save|remember|record|log|retain|archive|memori[sz]e)"
_STORED_EN: Final = r"(?:stored|kept|saved|remembered|recorded|logged|retained|archived|memori[sz]ed)"
_STORING_EN: Final = r"(?:storing|keeping|saving|remembering|recording|logging|retaining|archiving)"
_THIS_ES: Final = (
    r"(?:nada\s+de\s+)?(?:esto|el\s+adjunto|(?:el\s+)?(?:archivo|fichero|documento)\s+adjunto|est[eao]s?\s+(?:mensajes?|archivos?|ficheros?|documentos?|adjuntos?|textos?|fotos?"
    r"|im[aá]gen(?:es)?|audios?|datos?|conversaci[oó]n)|(?:mi|el|mis)\s+mensajes?|lo\s+que\s+(?:te\s+)?(?:acabo\s+de\s+(?:decir|contar"
    r"|escribir|mandar|enviar)(?:te)?|diga|cuente|escriba|mande|env[ií]e|digo|cuento|escribo|mando|env[ií]o|he\s+(?:dicho|contado|escrito|mandado|enviado)|estoy\s+(?:diciendo|contando|escribiendo)))"
)
_THIS_EN: Final = (
    r"(?:any(?:thing)?\s+(?:of|from|in|about)\s+|(?:an?y?)\s+(?:copy|records?|logs?|trace)\s+of\s+)?"
    r"(?:(?:this|these)(?:\s+(?:messages?|files?|documents?|attachments?|texts?|photos?|pictures?|chat|conversation|data|info"
    r"|information))?|my\s+messages?|what\s+i(?:['’]?(?:m|ve|\s+am|\s+have))?\s+(?:say|said|write|wrote|written|tell(?:ing)?\s+you"
    r"|told\s+you|send|sent|saying|writing|sending)(?:\s+you)?)"
)
_NOT_STORED: Final = (
    rf"no\s+(?:quiero\s+que\s+|hace\s+falta\s+que\s+)?(?:me\s+)?(?:{_STORES_ES})\s+{_THIS_ES}"
    rf"|que\s+(?:esto\s+)?no\s+(?:se\s+(?:quede\s+)?(?:guarde|almacene|registre|conserve|archive)|quede\s+(?:guardado"
    r"|registrad[oa]|registro|constancia|rastro|nada\s+de\s+esto))(?:\s+(?:de\s+)?(?:esto|nada|este\s+mensaje))?"
    r"|no\s+(?:dejes|deje|guardes)\s+(?:registro|constancia|rastro|copia)(?:\s+de\s+(?:esto|nada|este\s+mensaje))?"
    r"|sin\s+(?:guardar|almacenar|registrar|conservar)\s+(?:nada\s+de\s+)?(?:esto|este\s+mensaje)"
    rf"|(?:i\s+)?(?:do\s+not|don['’]?t|never)\s+(?:(?:ever\s+)?{_STORES_EN}|want\s+you\s+to\s+{_STORES_EN})\s+{_THIS_EN}"
    rf"|(?:i\s+)?(?:do\s+not|don['’]?t)\s+want\s+(?:this|it|any\s+of\s+(?:this|it))(?:\s+\pL+)?\s+(?:to\s+be\s+)?{_STORED_EN}"
    rf"|(?:this|it)\s+(?:(?:must|should|may|is|can)\s+not|(?:must|should|is|ca)n['’]?t|is\s+to\s+not)\s+(?:to\s+)?be\s+{_STORED_EN}"
    rf"|nothing\s+of\s+this\s+(?:must|should|may|is|can)\s+(?:to\s+)?be\s+{_STORED_EN}"
    rf"|without\s+{_STORING_EN}\s+(?:this|it|anything|any\s+of\s+(?:this|it))"
    r"|keep\s+(?:this|it)\s+out\s+of\s+(?:your\s+)?(?:memory|records|logs)|(?:this\s+is\s+)?off\s+the\s+record"
)
"""The wish that nothing of a message be kept. Words that it is made of can only make the agent keep less."""
_NOT_STORED_ALONE: Final = (
    rf"no\s+(?:(?:lo|la|los|las)\s+(?:{_STORES_ES})|(?:{_STORES_ES})\s+nada)|sin\s+(?:guardar|almacenar|registrar)(?:l[oa]s?|\s+nada)"
    rf"|(?:do\s+not|don['’]?t|never)\s+{_STORES_EN}\s+(?:it|them|that|anything)"
)
"""The same in words that, with more behind them, may be about something else: don't keep it in the fridge."""
_END: Final = r"(?:[\s,]+(?:por\s+favor|please))?\s*(?:$|[.,;:!)])"
_BEGIN: Final = r"(?:^|[\s.,;:(¡])"
_DO_NOT_STORE = expression(rf"(?i){_BEGIN}(?:(?:{_NOT_STORED})(?:$|[\s.,;:!)])|(?:{_NOT_STORED_ALONE}){_END})")
_TELLS = expression(
    rf"(?is)^(?:.*[^\pL])?(?:(?:i|we|you|they|he|she|people)\s+(?:do\s+not|don['’]?t|never)\s+(?:ever\s+)?{_STORES_EN}"
    rf"\s+(?:{_THIS_EN}|it|them|that|anything)|don['’]?t\s+you\s+{_STORES_EN}\s+\pL+)[\s.,;:!)]?$"
)
"""Words up to the end of a wish that make it a sentence about somebody."""
_TELLS_REACH: Final = 40
_STORE_PHRASE = expression(
    rf"(?i)^[\s¡(]*(?:(?:por\s+favor|please)[\s,]*)?(?:{_NOT_STORED}|{_NOT_STORED_ALONE})(?:[\s,]+(?:por\s+favor|please))?[\s.,;:!)]+"
    rf"|^[\s¡(]*(?:{_NOT_STORED}|{_NOT_STORED_ALONE})$"
    rf"|[\s.,;:(¡]*(?:(?:y|pero|and|but|por\s+favor|please)[\s,]+)*(?:{_NOT_STORED}|{_NOT_STORED_ALONE}){_END}[\s.!)]*$"
)
_CONTINUE = expression(r"(?i)^[\s¡]*(?:contin[uú]a|continuar|sigue|seguir|continue)[\s.!]*$")


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
    """Return True if a person asks that their message not be stored: "no guardes esto", "keep this off the record".

    What somebody does not store or remember is told: "I don't remember this".
    """
    near = (text[max(0, found.start() - _TELLS_REACH) : found.end()] for found in _DO_NOT_STORE.finditer(text))
    return any(_TELLS.match(one) is None for one in near)


def without_store_phrase(text: str) -> str:
    """Return a text without that phrase at its beginning or end, so that the rest can be understood."""
    return _STORE_PHRASE.sub("", text) if asks_not_to_store(text) else text


def is_continue(text: str) -> bool:
    """Return True if a text asks to continue what was begun, or says a clear yes to that question."""
    return _CONTINUE.match(text) is not None or read_answer(text) == "yes"
