"""Check of a model's reply against the ledger: false claims of effects are removed and replaced by built-in text.

A model is instructed never to claim what no result shows, but some do so anyway: "Done! I have sent the e-mail". The
person reads the reply as the product's statement. The agent therefore states from the ledger what did not happen, in
two cases:

- The request asks for an effect, no call of that kind succeeded, and no sentence of the reply denies it, asks back or
  speaks of what can be done. The wording in which the reply claims otherwise does not matter.
- A sentence claims an effect in Spanish or English words, whatever the request was, and the ledger has none.

In both cases the sentences that may make the claim are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.requests.model import ARTIFACTS, Ask
from phylactery_understanding.requests.parser import parse

from phylactery_agent.graph.llm.proposals import readable
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import EffectState, Language, LedgerRow, TurnContext
from phylactery_agent.rules.expressions import Expression, expression
from phylactery_agent.rules.planner import read_aside
from phylactery_agent.tools.registry import ToolRegistry

Kind = Literal["send", "write", "delete", "remind", "other"]
T = TypeVar("T")
KINDS: Final[tuple[Kind, ...]] = ("send", "write", "delete", "remind", "other")
"""Kinds of claims; each has a sentence claim_<kind> in i18n.model_texts. other is any effect at all."""

_MAIL: Final = r"e-?mails?|mails?|messages?|sms|whatsapp|correos?|mensajes?|recados?|\S+@\S+\.\S+"
_FILE: Final = (
    r"files?|folders?|documents?|notes?|lists?|entry|entries|records?|database|spreadsheet|"
    r"ficheros?|archivos?|carpetas?|documentos?|notas?|listas?|registros?|base\s+de\s+datos|[\w-]+\.[a-z]{1,4}\d?\b"
)
_DATE: Final = (
    r"reminders?|alarms?|appointments?|meetings?|events?|calendar|"
    r"recordatorios?|alarmas?|citas?|reuni[oó]n(?:es)?|eventos?|calendario|agenda"
)
_NOUNS: Final[dict[Kind, Expression]] = {
    "send": expression(rf"(?i)(?:^|[^\pL])(?:{_MAIL})"),
    "write": expression(rf"(?i)(?:^|[^\pL])(?:{_FILE})(?:[^\pL]|$)"),
    "delete": expression(rf"(?i)(?:^|[^\pL])(?:{_FILE}|{_DATE}|{_MAIL})"),
    "remind": expression(rf"(?i)(?:^|[^\pL])(?:{_DATE})"),
}
"""Objects of an effect, by kind: an ambiguous verb counts only together with one of these."""

_VERBS: Final[dict[Kind, tuple[tuple[str, str], tuple[str, str]]]] = {
    "send": (
        (
            r"sent|e-?mailed|mailed|messaged|texted|forwarded|notified|delivered|dispatched|shared\s+(?:\S+\s+){1,4}?with",
            "(?:re)?envi|mand|notific|notifiqu|remit|despach|compart",
        ),
        ("posted|published|replied|informed|called|phoned|told", "public|publiqu|respond|llam|avis"),
    ),
    "write": (
        ("saved|overwritten|overwrote|appended|renamed|uploaded", "guard|renombr|anex"),
        (
            "written|wrote|created|updated|edited|changed|modified|added|stored|recorded|replaced|moved|copied|noted|put",
            "cre|actualiz|actualic|edit|modific|modifiqu|añad|agreg|agregu|apunt|anot|mov|copi|cambi|grab|escrib",
        ),
    ),
    "delete": (
        ("deleted|erased", "borr|elimin"),
        ("removed|cancelled|canceled|cleared", "suprim|cancel|anul|quit"),
    ),
    "remind": (
        ("scheduled|rescheduled", "program|agend"),
        (r"set(?:\s+up)?|arranged|created|added", "cre|añad"),
    ),
    "other": (
        ("booked|reserved|paid|purchased|bought|transferred|deployed", "reserv|pag|pagu|compr|transfer|despleg"),
        ("", ""),
    ),
}
"""English participles and Spanish stems per kind: those sufficient alone, and those that need a noun."""
_ASKED: Final[tuple[tuple[Kind, frozenset[str], Kind | None], ...]] = (
    ("remind", frozenset({"remind"}), "remind"),
    ("delete", frozenset({"delete", "remove", "cancel"}), None),
    ("send", frozenset({"tell", "notify", "write", "add", "create", "compose"}), "send"),
    ("send", frozenset({"send", "forward", "notify", "message", "reply"}), None),
    ("write", frozenset({"write", "add", "create", "record", "put", "append", "edit", "rename", "update"}), "write"),
    ("remind", frozenset({"schedule", "create", "add", "put"}), "remind"),
    ("write", frozenset({"record", "remember"}), None),
    ("write", frozenset({"make", "compose", "draft"}), "write"),
    ("other", frozenset({"pay", "book", "reserve", "order", "buy", "transfer", "publish", "deploy", "stop"}), None),
)
"""The kind of effect of an ask, by its verb's meanings and the object it must name; the first match counts."""
_VAGUE: Final[dict[Kind, frozenset[str]]] = {
    "send": frozenset({"write", "add", "create", "compose"}),
    "other": frozenset({"make"}),
    "write": frozenset(),
    "delete": frozenset(),
}
"""Meanings of verbs that are ambiguous on their own: what is written or made may stay in the reply."""
_TALK: Final = frozenset({"read", "summarize", "translate", "draft", "find", "search"})
"""Meanings of verbs that the reply itself answers."""
_MADE: Final = ARTIFACTS - {"note", "notes", "nota", "notas", "calendario", "agenda"}
"""Things made on request; unlike a note or a calendar, they are shown in the reply if no destination is named."""
_POLITE: Final = expression(r"(?i)\b(?:can|could|would|will)\s+you\b|\b(?:puedes|podrías|podrias|quieres)\b")
"""Words that make a question a request."""
_REMIND: Final = expression(r"(?i)\b(?:remind|recu[eé]rda(?:me|nos|le)|av[ií]s[ae](?:me|nos))")
_PLACE: Final = expression(r"(?i)\S+@\S+\.\S+|[^\s/]\.[a-z]{1,4}\d?\b")
"""A file or an address: the destination of what is made."""
_TEXTS: Final = expression(
    r"(?i)\b(?:poem|haiku|song|lyrics|story|tale|joke|sing|imagine|pretend|example|draft|"
    r"poema|canción|cuento|chiste|historia|canta|cántame|imagina|ejemplo|borrador|redacta)"
)
"""Requests for a text, whose sentences have their own subjects and are not reports."""
_IRREGULAR: Final[dict[Kind, str]] = {"write": "|(?:sobre)?escrit[oa]s?", "remind": "|puest[oa]s?"}

_ADVERB: Final = (
    r"(?:(?:just|already|now|also|successfully|then|therefore|indeed|gone\s+ahead\s+and|went\s+ahead\s+and|"
    r"ya|también|por\s+fin|correctamente|ahora)\s+)*"
)
_NOT_DONE: Final = expression(
    r"(?i)\b(?:no|nunca|tampoco|jamás|ni|sin)\s+(?:(?:lo|la|los|las|le|les|te|se|me|os|nos|ya)\s+)*"
    r"(?:(?:he|hemos|ha|han|fue|fueron|está|están|queda|quedó|acabo)\s+)?(?:(?:sido|de)\s+)?\pL+"
    r"|(?:\b(?:could|can|would|should|may|might|must)(?:\s+not|n['’]t)?|\b(?:cannot|not|never)|n['’]t)\s+"
    r"(?:(?:be|been|get|have)\s+){1,2}\pL+"
    r"|\b(?:before|once|when|whenever|after|until|unless|if|cuando|antes\s+de\s+que|hasta\s+que|una\s+vez)\s[^,.;:]*"
)
"""Wording for what was not done, may be done, or is conditional."""
_MAYBE: Final = expression(
    r"(?i)^\W*(?:if|once|when|whenever|after|unless|until|should|si|cuando|una\s+vez|en\s+cuanto|después|hasta)"
    r"(?:[^\pL]|$)"
)
_GENERIC: Final = expression(
    r"(?i)^\W*(?:\pL+\W+){0,2}?(?:done|hecho|listo|completado|completed?|all\s+set|sorted|ya\s+está|"
    r"misión\s+cumplida|mission\s+accomplished)(?:[^\pL]|$)"
    r"|\b(?:consider\s+(?:it|that)|dalo\s+por|dala\s+por)\s+\pL+"
    r"|\bon\s+(?:its|their)\s+way\b|\b(?:va|van|está|están|ya)\s+(?:de|en)\s+camino"
    r"|\b(?:carried\s+out|went\s+through|taken\s+care\s+of|took\s+care\s+of)\b|^\W*off\s+it\s+goes"
    r"|\b(?:llevad[oa]\s+a\s+cabo|se\s+(?:efectuó|realizó|completó)|me\s+(?:encargué|ocupé|deshice)\s+de)"
)
"""Wording that reports completion without an object: it refers to what was requested or agreed to."""
_OUTCOME: Final = expression(
    r"(?i)\b(?:\pL+ed|sent|gone|out|ready|set|put|done|now|already|will|has|is|are|was|were|went|reached|"
    r"ya|está|están|quedó|queda|tiene|tienen|contiene|existe|figura|fue|fueron|salió|ahora)(?:[^\pL]|$)"
    r"|['’](?:ll|ve|s)\b|\pL{3,}(?:[aií]d[oa]s?|ó|aron|ieron|[aei]rá|[aei]ré)(?:[^\pL]|$)"
)
"""Wording that may describe an outcome; such a sentence is hidden if the reply misstates one."""
_HOLLOW: Final = expression(
    r"(?i)\b(?:no\s+(?:longer|problems?|issues?|worries|need|trace|doubt)|"
    r"without\s+(?:any\s+)?(?:problems?|issues?|trouble)|"
    r"you\s+can|as\s+you\s+\pL+|any\s?more|"
    r"ya\s+no|sin\s+(?:ningún\s+)?(?:problemas?|incidencias?)|no\s+te\s+preocupes|"
    r"(?:no\s+queda\s+)?ni\s+rastro|puedes|podrás)\b"
)
"""Denials and abilities that do not retract the claim."""
_PROMISE: Final = expression(
    r"(?i)\b(?:(?:I|we)(?:['’]ll|\s+will)|(?:I['’]m|I\s+am|we['’]re|we\s+are)\s+(?:going|about)\s+to|let\s+me)\s+"
    r"(?:(?:now|just|then|also|quickly|go\s+ahead\s+and)\s+)*"
    r"(?:make|create|write|save|add|put|send|e-?mail|mail|set|schedule|remind|delete|remove|store|note|record|update|"
    r"append|copy|rename|move|book|pay|prepare|do)\b"
    r"|\b(?:(?:voy|vamos)\s+a|d[eé]jame(?:\s+que)?)\s+(?:hacer|crear|escribir|guardar|añadir|apuntar|anotar|poner|enviar|"
    r"mandar|programar|recordar|borrar|eliminar|preparar|actualizar|copiar|renombrar|mover|reservar|pagar)(?:[tlms]\pL+)?(?:[^\pL]|$)"
    r"|\b(?:haré|crearé|escribiré|guardaré|añadiré|apuntaré|anotaré|pondré|enviaré|mandaré|programaré|recordaré|borraré|"
    r"eliminaré|prepararé|actualizaré|copiaré|moveré|reservaré|pagaré)(?:[^\pL]|$)"
)
"""Announcements of an effect: of what was asked for and did not happen, they are as false as a report."""
_CONDITION: Final = expression(
    r"(?i)(?:^|[^\pL])(?:if|once|when|after|unless|until|as\s+soon\s+as|si|cuando|una\s+vez|en\s+cuanto|hasta\s+que)(?:[^\pL]|$)"
)
_DENIES: Final = expression(
    r"(?i)\b(?:no|not|never|nothing|cannot|unable|unfortunately|sorry|fail(?:ed|s)?|refused|blocked|denied|"
    r"nunca|nada|tampoco|imposible|lo\s+siento|lamento|por\s+desgracia)(?:[^\pL]|$)|n['’]t(?:[^\pL]|$)"
)
_ASKS_FOR: Final = expression(
    r"(?i)(?:^|[^\pL])(?:what|which|who|whom|whose|when|where|why|how|or|tell|give|name|send\s+me|qué|cuál|cuáles|quién|quiénes|"
    r"cuándo|dónde|cómo|cuánto|cuánta|cuántos|cuántas|o|dices|das|dime|dame|indicas)(?:[^\pL]|$)"
)
"""Words of a question that is about more than a yes: something that the request left open."""
_CLOSING: Final = expression(
    r"(?i)\b(?:anything|something|what)\s+else\b|\b(?:too|as\s+well|also)\W*$|[^\pL](?:también|además)\W*$|"
    r"\balgo\s+más\b|\b(?:let\s+me\s+know|just\s+ask|avísame|dime)\s+(?:if|when|si|cuando)\b|"
    r"^\W*(?:if\s+you\s+need|si\s+necesitas)\b"
)
"""A generic closing phrase that neither asks nor denies."""
_OPEN: Final = expression(
    r"(?i)(?:\b(?:no|not|never|none|nothing|nobody|neither|nor|cannot|without|unless|until|before|if|"
    r"can|could|would|may|might|should|shall|must|needs?|unable|unfortunately|sorry|please|"
    r"fail(?:ed|s|ure)?|refused|blocked|rejected|denied|error|impossible|disabled|beyond|instead|"
    r"nunca|nada|nadie|ningun[oa]?|ningún|tampoco|sin|salvo|hasta|antes|puedo|puede|podría|pude|pudo|podré|podrá|"
    r"debo|debería|necesito|necesita|falta|falló|fallado|rechaz\pL+|bloque\pL+|deneg\pL+|desactivad[oa]|"
    r"imposible|lo\s+siento|lamento|por\s+desgracia|fuera\s+de|en\s+vez)|n['’]t)(?:[^\pL]|$)"
    r"|^\W*(?:tell|say|give|name|choose|dime|indica|elige|di|si)(?:[^\pL]|$)|\s(?:si|dime)\s|"
    r"\pL{2,}ría[sn]?(?:[^\pL]|$)"
)
"""Wording that leaves open whether something was done: denial, condition, ability, or an intention of the agent."""
_PERFECT: Final = expression(r"(?i)\b(?:I|we)\s*(?:['’]ve|have)\b|\b(?:he|hemos)\s|\bacabo\s+de\b")
"""First-person perfect forms: a reply reports about itself, while a story is about someone else."""
_DRAFT: Final = expression(
    r"(?i)\b(?:draft|proposal|suggestion|version|example|form|correction|translation|"
    r"borrador|propuesta|sugerencia|versión|ejemplo|forma|corrección|traducción)\b[^.!?\n:]{0,40}:"
)
_SENTENCE: Final = expression(r"(?s)[^\n]*?(?:[.!?…]+[\"'”»)\]]*(?:\s+|$)|\n+|$)")
_QUOTE: Final = expression(r"(?s)«[^»]*»|“[^”]*”|\"[^\"\n]*\"|`[^`\n]*`")


def _patterns(english: str, stems: str, irregular: str = "") -> tuple[Expression, Expression, Expression]:
    """Return the forms of a claim: first person, short report, and impersonal."""
    participle = rf"(?:(?:{stems})(?:ad|id)[oa]s?{irregular})"
    own = (
        rf"\b(?:I|we)(?:['’]ve|\s+have|['’]d)?\s+{_ADVERB}(?:{english})\b"
        rf"|\b(?:he|hemos)\s+{_ADVERB}{participle}(?:[^\pL]|$)"
        rf"|\b(?:{stems})[éí](?:[^\pL]|$)"
        rf"|\bacabo\s+de\s+(?:{stems})[aáeéií]r"
    )
    noun = rf"(?:(?:the|your|el|la|tu|su)\s+)?(?:(?:{_MAIL}|{_FILE}|{_DATE})(?:\s+[^\s.!?]+){{0,3}}?\s+)?"
    report = (
        rf"^\W*{_ADVERB}{noun}(?:has\s+been\s+)?(?:{english}|{participle})\s*"
        r"(?:[.!…:,]|$|(?:\s|^)(?:to|a|en|in|for|para|successfully|correctamente|con)\s)"
    )
    report += rf"|^\W*(?:ya\s+)?se\s+(?:ha|han)\s+{_ADVERB}{participle}(?:[^\pL]|$)"
    was = (
        rf"\b(?:has|have)\s+{_ADVERB}been\s+{_ADVERB}(?:{english})\b"
        rf"|\b(?:was|were|is|are|it['’]s)\s+{_ADVERB}(?:{english})\b"
        rf"|\b(?:se\s+(?:ha|han)|(?:ha|han)\s+sido|fue|fueron|qued[aoó]n?|está|están)\s+{_ADVERB}"
        rf"{participle}(?:[^\pL]|$)"
    )
    return expression(f"(?i){own}"), expression(f"(?i){report}"), expression(f"(?i){was}")


_CLAIMS: Final = {
    kind: (_patterns(*alone), _patterns(*beside, _IRREGULAR.get(kind, "")) if beside[0] else None)
    for kind, (alone, beside) in _VERBS.items()
}


_MAX_REQUEST: Final = 2_000
"""Characters of a request that are read for its intent: a longer request contains a text, preceded by the question."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The effects a request asks for, as far as a reply is checked against them."""

    asks: tuple[Kind, ...] = ()
    """The kinds of effect it asks for."""
    agrees: bool = False
    """Whether it agrees to the previous message."""
    text: bool = False
    """Whether it asks for a text, whose sentences are not a report."""

    def missing(self, done: Collection[Kind]) -> set[Kind]:
        """Return the requested kinds that did not happen."""
        return set(self.asks) - set(done)


NOTHING: Final = Wanted()


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on a reply: the kinds of effect it misstates, and the part of it that may be shown."""

    false: set[Kind]
    kept: str


class Claims:
    """The claims a model's reply may make in one turn, from the person's request and the results of the calls."""

    def __init__(self, context: TurnContext, request: str, language: Language) -> None:
        self._context, self._language = context, language
        self._wanted = wanted_by(request[:_MAX_REQUEST])
        self._seen: dict[str, set[Kind]] = {}
        self._rows: Sequence[LedgerRow] | None = None

    async def honest(self, text: str) -> str:
        """Return a reply without the sentences the ledger does not support, preceded by the correction."""
        done = await self._in(EffectState.FINISHED)
        found = await self._aside(text, lambda: judged(text, self._wanted, done))
        if found.false:
            earlier = effects_of(await self._context.ledger.done_before(), self._context.tools)
            found = await self._aside(text, lambda: judged(text, self._wanted, done, earlier))
        if not found.false:
            return text
        doubted = found.false & await self._in(EffectState.IN_DOUBT, EffectState.STARTED)
        ours = [say("claim_unsure", self._language)] if doubted else []
        ours += [say(f"claim_{kind}", self._language) for kind in KINDS if kind in found.false - doubted]
        ours += [say("claim_again", self._language)] if found.false - doubted else []
        return "\n\n".join(part for part in (" ".join(ours), found.kept) if part)

    async def settled(self, text: str) -> str:
        """Return the publishable part of a streamed text: what is before a proposal or a possibly false sentence."""
        text, done = readable(text), await self._in(EffectState.FINISHED)
        return await self._aside(text, lambda: self._settled(text, done))

    def _settled(self, text: str, done: set[Kind]) -> str:
        kept, missing = "", self._wanted.missing(done)
        for sentence in _sentences(text):
            if sentence not in self._seen:  # streamed text is checked repeatedly
                self._seen[sentence] = claims_of(sentence, self._wanted)
            wrong = self._seen[sentence] - done or (not done and _any((_GENERIC,), sentence))
            if wrong or (missing and (not is_open(sentence) or _is_promise(sentence))):
                break
            kept += sentence
        return kept

    async def _aside(self, text: str, work: Callable[[], T]) -> T:
        """Return work's result for a reply; a long text is processed off the event loop, one at a time per turn."""
        return await read_aside(("claims", id(self)), text, work)

    async def _in(self, *states: EffectState) -> set[Kind]:
        """Return the kinds of effect represented by the run's calls in these states; errors do not count."""
        if self._rows is None:
            self._rows = await self._context.ledger.calls()
        done = (row.tool for row in self._rows if row.state in states and row.status != "error")
        return effects_of(done, self._context.tools)


def judged(text: str, wanted: Wanted, done: set[Kind], earlier: Collection[Kind] = ()) -> Judged:
    """Return the effects a reply falsely claims; done holds the effects of the run, earlier those of previous runs.

    A reply may mention earlier effects, but they do not satisfy a new request for one.
    """
    told = [(sentence, claims_of(sentence, wanted)) for sentence in _sentences(_without_draft(text))]
    true = done | (set(earlier) - set(wanted.asks))
    missing = wanted.missing(done)
    false = {kind for _, kinds in told for kind in kinds} - true
    promised = bool(missing) and promises(text)
    if missing and (promised or not any(is_open(sentence) for sentence, _ in told)):
        false |= missing
    elif any(not kinds and _any((_GENERIC,), one) and not is_open(one) for one, kinds in told):
        false |= missing or ({"other"} if wanted.agrees and not true else set())
    if not false:
        return Judged(set(), text)
    each = [(sentence, claims_of(sentence, wanted)) for sentence in _sentences(text)]
    kept = "".join(
        sentence
        for sentence, kinds in each
        if not kinds - true
        and (kinds or is_open(sentence) or not _any((_OUTCOME, _GENERIC), sentence))
        and not (promised and (_is_promise(sentence) or _is_question(sentence)))
    )
    return Judged(false, kept.strip())


def claims_of(sentence: str, wanted: Wanted = NOTHING) -> set[Kind]:
    """Return the kinds of effect a sentence claims to have happened; quoted text does not count.

    A statement that something was sent may come from a file. Without a grammatical person it counts only if it is the
    usual short form of an assistant's report, or if that effect was requested.
    """
    said = _NOT_DONE.sub(" … ", _QUOTE.sub(" … ", sentence))
    if said.rstrip(" \n\"'”»)").endswith("?") or _any((_MAYBE,), said):
        return set()
    if wanted.text and not wanted.asks and not _any((_PERFECT,), said):
        return set()
    found: set[Kind] = set()
    for kind, (alone, beside) in _CLAIMS.items():
        forms = 3 if kind in wanted.asks or wanted.agrees else 2
        if _any(alone[:forms], said) or (beside is not None and _names(kind, said) and _any(beside[:forms], said)):
            found.add(kind)
    return found - {"write"} if "remind" in found else found


def promises(text: str) -> bool:
    """Return True if a reply announces an effect, and neither denies one nor asks for anything but a yes."""
    said = [(one, _HOLLOW.sub(" … ", _QUOTE.sub(" … ", one))) for one in _sentences(_without_draft(text))]
    return any(_is_promise(one) for one, _ in said) and not any(
        _any((_DENIES,), bare)
        or (_is_question(one) and not _is_promise(one) and _any((_ASKS_FOR,), bare) and not _any((_CLOSING,), bare))
        for one, bare in said
    )


def _is_promise(sentence: str) -> bool:
    said = _QUOTE.sub(" … ", sentence)
    return _any((_PROMISE,), said) and not _any((_CONDITION,), said)


def _is_question(sentence: str) -> bool:
    return sentence.rstrip(" \n\"'”»)").endswith("?")


def is_open(sentence: str) -> bool:
    """Return True if a sentence asks back, denies, is conditional or speaks of what can be done."""
    said = _HOLLOW.sub(" … ", _QUOTE.sub(" … ", sentence)).strip()
    if _any((_CLOSING,), said):
        return False
    return said.rstrip("\"'”»)").endswith("?") or _any((_OPEN, _DRAFT), said)


def wanted_by(request: str) -> Wanted:
    """Return the effects a request asks for; none if it asks for none or cannot be interpreted."""
    agrees, text = read_answer(request) == "yes", _any((_TEXTS,), request)
    if agrees or ("?" in request and not _any((_POLITE,), request)):
        return Wanted(agrees=agrees, text=text)
    kinds = (_kind_of(ask, request) for ask in parse(request).asks if ask.fault is None)
    return Wanted(tuple(dict.fromkeys(kind for kind in kinds if kind is not None)), text=text)


def effects_of(names: Iterable[str], tools: ToolRegistry) -> set[Kind]:
    """Return the effects that successful calls of the tools of these names may be described as."""
    return {kind for name in names if _has_effect(name, tools) for kind in (*_kinds_of(name), "other")}


def _kind_of(ask: Ask, request: str) -> Kind | None:
    """Return the kind of effect an ask is for, or None if the reply itself answers it or the kind is unclear."""
    meant = ask.verb.meanings
    said = request[ask.tokens[0].start : ask.tokens[-1].stop]
    named = {kind for kind in KINDS if _names(kind, said) or (kind == "remind" and _any((_REMIND,), said))}
    if meant & _TALK and "send" not in meant and not ("tell" in meant and "send" in named):
        return None
    made = meant & {"compose", "write", "make"} and {token.text for token in ask.tokens} & _MADE
    if made and not _any((_PLACE,), said):
        return None
    return next(
        (
            kind
            for kind, words, beside in _ASKED
            if words & meant and (beside in named if beside else not meant & _VAGUE[kind])
        ),
        None,
    )


def _without_draft(text: str) -> str:
    """Return the text up to where it shows a draft; what follows is text written on behalf of another author."""
    found = next(_DRAFT.finditer(text), None)
    return text if found is None else text[: found.end()]


def _any(patterns: Iterable[Expression], said: str) -> bool:
    return any(next((True for _ in pattern.finditer(said)), False) for pattern in patterns)


def _names(kind: Kind, said: str) -> bool:
    return kind in _NOUNS and _any((_NOUNS[kind],), said)


def _has_effect(name: str, tools: ToolRegistry) -> bool:
    spec = tools.get(name)
    return spec is None or spec.contract.effect != "read"


_OF_TOOL: Final[dict[str, set[Kind]]] = {
    "send_email": {"send"},
    "send_file": {"send"},
    "write_file": {"write"},
    "undo_write": {"write", "delete"},
    "create_reminder": {"remind", "write"},
    "cancel_reminder": {"remind", "delete"},
    "remember": {"write"},
    "forget": {"delete"},
}
_SENDS: Final = expression(r"(?i)send|mail|message|post|notif|publish|tweet|reply|forward|sms|chat|share|announce")
_DELETES: Final = expression(r"(?i)delete|remove|cancel|drop|clear|erase|purge|close|archive")


def _kinds_of(tool: str) -> set[Kind]:
    """Return the effects a tool's success may be described as; an external tool is classified by its name alone."""
    known = _OF_TOOL.get(tool)
    if known is not None:
        return known
    kinds: set[Kind] = {"write", "remind"}
    kinds |= {"send"} if next(_SENDS.finditer(tool), None) is not None else set()
    return kinds | ({"delete"} if next(_DELETES.finditer(tool), None) is not None else set())


def _sentences(text: str) -> Iterator[str]:
    return (found.group() for found in _SENTENCE.finditer(text) if found.group())
