"""A model's words held against the ledger: what it says was done and was not is taken out, and said by us instead.

A model is told never to claim what no result shows, and some do it all the same: "Done! I have sent the e-mail". The
person reads the reply as the product's word, so every sentence that claims an effect needs a call of the run that came
to a success. What a claim looks like is a matter of words, in Spanish and English, so a request that plainly asks for
an effect is looked at as well: where nothing of the kind was even tried, that is said whatever the model's words are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from phylactery_understanding.request import parse

from phylactery_agent.ports import Language, LedgerRow, TurnContext
from phylactery_agent.static.expressions import Expression, expression
from phylactery_agent.texts import say
from phylactery_agent.tools.registry import TOOL_REGISTRY

Kind = Literal["send", "write", "delete", "remind", "other"]
KINDS: Final[tuple[Kind, ...]] = ("send", "write", "delete", "remind", "other")
"""What may be claimed; each has a sentence claim_<kind> in texts_model. other is any effect at all."""

_MAIL: Final = r"e-?mails?|mails?|messages?|sms|whatsapp|correos?|mensajes?|\S+@\S+\.\S+"
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
"""What an effect of a kind is about: a verb that can mean much else counts beside one of these alone."""

_VERBS: Final[dict[Kind, tuple[tuple[str, str], tuple[str, str]]]] = {
    "send": (
        (
            "sent|e-?mailed|mailed|messaged|texted|forwarded|notified|delivered",
            "(?:re)?envi|mand|notific|notifiqu|remit",
        ),
        ("posted|published|shared|replied|informed", "public|publiqu|respond|compart"),
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
"""Per kind the English participles and Spanish stems that say it by themselves, and those that do beside a noun."""
_ASKED: Final[tuple[tuple[Kind, frozenset[str]], ...]] = (
    ("remind", frozenset({"remind"})),
    ("delete", frozenset({"delete"})),
    ("write", frozenset({"write", "add", "create", "record", "put"})),
    ("send", frozenset({"send"})),
)
"""The kind of effect a request asks for that names one, and what its verb may mean then; the first that fits counts."""
_POLITE: Final = expression(r"(?i)\b(?:can|could|would|will)\s+you\b|\b(?:puedes|podrías|podrias|quieres)\b")
"""What makes a question a request."""
_REMIND: Final = expression(r"(?i)\b(?:remind|recu[eé]rd|av[ií]s)")
_IRREGULAR: Final[dict[Kind, str]] = {"write": "|(?:sobre)?escrit[oa]s?", "remind": "|puest[oa]s?"}

_ADVERB: Final = (
    r"(?:(?:just|already|now|also|successfully|then|therefore|indeed|gone\s+ahead\s+and|went\s+ahead\s+and|"
    r"ya|también|por\s+fin|correctamente|ahora)\s+)*"
)
_NOT_DONE: Final = expression(
    r"(?i)\b(?:no|nunca|tampoco|jamás|ni|sin)\s+(?:(?:lo|la|los|las|le|les|te|se|me|os|nos|ya)\s+)*"
    r"(?:(?:he|hemos|ha|han|fue|fueron|está|están|queda|quedó|acabo)\s+)?(?:(?:sido|de)\s+)?\pL+"
)
"""What Spanish says was not done; in English the word for it stands between the words of a claim and parts them."""
_MAYBE: Final = expression(
    r"(?i)^\W*(?:if|once|when|whenever|after|unless|until|should|si|cuando|una\s+vez|en\s+cuanto|después|hasta)"
    r"(?:[^\pL]|$)"
)
_GENERIC: Final = expression(
    r"(?i)^\W*(?:all\s+)?(?:done|hecho|listo|completado|completed|all\s+set|ya\s+está)(?:[^\pL]|$)"
)
_SENTENCE: Final = expression(r"(?s)[^\n]*?(?:[.!?…]+[\"'”»)\]]*(?:\s+|$)|\n+|$)")
_QUOTE: Final = expression(r"(?s)«[^»]*»|“[^”]*”|\"[^\"\n]*\"|`[^`\n]*`")


def _patterns(kind: Kind, english: str, stems: str) -> tuple[Expression, Expression, Expression]:
    """Return the forms of a claim: of oneself, short as a report, and without a person."""
    participle = rf"(?:(?:{stems})(?:ad|id)[oa]s?{_IRREGULAR.get(kind, '')})"
    own = (
        rf"\b(?:I|we)(?:['’]ve|\s+have|['’]d)?\s+{_ADVERB}(?:{english})\b"
        rf"|\b(?:he|hemos)\s+{_ADVERB}{participle}(?:[^\pL]|$)"
        rf"|\b(?:{stems})[éí](?:[^\pL]|$)"
        rf"|\bacabo\s+de\s+(?:{stems})[aáeéií]r"
    )
    noun = rf"(?:(?:the|your|an?|el|la|tu|su|un|una)\s+)?(?:(?:{_MAIL}|{_FILE}|{_DATE})(?:\s+[^\s.!?]+){{0,3}}?\s+)?"
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
    kind: (_patterns(kind, *alone), _patterns(kind, *beside) if beside[0] else None)
    for kind, (alone, beside) in _VERBS.items()
}


_MAX_REQUEST: Final = 2_000
"""Characters of a request that are read for what it asks for: what is longer holds a text, and asks before it."""


class Claims:
    """What a model's words of one turn may claim: what the person asked for, and what came of the run's calls."""

    def __init__(self, context: TurnContext, request: str, language: Language) -> None:
        self._context, self._language = context, language
        self._asked = asked_for(request[:_MAX_REQUEST])
        self._seen: dict[str, set[Kind]] = {}
        self._rows: Sequence[LedgerRow] | None = None

    async def honest(self, text: str) -> str:
        """Return a reply without the sentences the ledger does not bear out, and with ours before what is left."""
        kept, false = await self._checked(text)
        if self._asked and "?" not in text and not await self._tried():
            false.add(self._asked)
        if not false:
            return text
        ours = [say(f"claim_{kind}", self._language) for kind in KINDS if kind in false]
        return "\n\n".join(part for part in (" ".join([*ours, say("claim_again", self._language)]), kept) if part)

    async def settled(self, text: str) -> str:
        """Return what may be told of words that are still coming: all up to the first claim that is not true."""
        kept = ""
        for sentence in _sentences(text):
            claimed = self._claims_of(sentence)
            if (claimed or _GENERIC.match(sentence) is not None) and (claimed or {"other"}) - await self._done():
                break
            kept += sentence
        return kept

    async def _checked(self, text: str) -> tuple[str, set[Kind]]:
        sentences = [(sentence, self._claims_of(sentence)) for sentence in _sentences(text)]
        claimed = {kind for _, kinds in sentences for kind in kinds}
        if not claimed:
            return text, set()
        done = await self._done()
        kept = "".join(
            sentence for sentence, kinds in sentences if not kinds - done and (done or _GENERIC.match(sentence) is None)
        )
        return kept.strip(), claimed - done

    def _claims_of(self, sentence: str) -> set[Kind]:
        """Return what a sentence claims; words that are still coming are looked at again and again."""
        if sentence not in self._seen:
            self._seen[sentence] = claims_of(sentence, asked=self._asked)
        return self._seen[sentence]

    async def _tried(self) -> bool:
        """Return whether the run tried any effect: what became of that is told beside the model's words."""
        return any(_has_effect(row.tool) for row in await self._calls())

    async def _done(self) -> set[Kind]:
        """Return the kinds of effect the run's calls came to a success with."""
        done: set[Kind] = set()
        for row in await self._calls():
            if row.state == "finished" and row.status != "error" and _has_effect(row.tool):
                done |= _kinds_of(row.tool) | {"other"}
        return done

    async def _calls(self) -> Sequence[LedgerRow]:
        if self._rows is None:
            self._rows = await self._context.ledger.calls()
        return self._rows


def claims_of(sentence: str, *, asked: Kind | None = None) -> set[Kind]:
    """Return the kinds of effect a sentence claims to have happened; what it quotes is nobody's claim.

    That something was sent may be what a file says: without a person in the sentence it counts where it is the short
    way of an assistant to report, or where that was asked for.
    """
    said = _NOT_DONE.sub(" … ", _QUOTE.sub(" … ", sentence))
    if said.rstrip(" \n\"'”»)").endswith("?") or _MAYBE.match(said) is not None:
        return set()
    found: set[Kind] = set()
    for kind, (alone, beside) in _CLAIMS.items():
        forms = 3 if asked == kind else 2
        if _any(alone[:forms], said) or (beside is not None and _names(kind, said) and _any(beside[:forms], said)):
            found.add(kind)
    return found - {"write"} if "remind" in found else found


def asked_for(request: str) -> Kind | None:
    """Return the kind of effect a request plainly asks for, None where it asks for none or nobody can tell."""
    if "?" in request and not _any((_POLITE,), request):
        return None
    meant = [ask.verb.meanings for ask in parse(request).asks if ask.fault is None]
    named = {kind for kind in KINDS if _names(kind, request) or (kind == "remind" and _any((_REMIND,), request))}
    return next((kind for kind, words in _ASKED if kind in named and any(words & one for one in meant)), None)


def _any(patterns: Iterable[Expression], said: str) -> bool:
    return any(next((True for _ in pattern.finditer(said)), False) for pattern in patterns)


def _names(kind: Kind, said: str) -> bool:
    return kind in _NOUNS and _any((_NOUNS[kind],), said)


def _has_effect(tool: str) -> bool:
    spec = TOOL_REGISTRY.get(tool)
    return spec is None or spec.contract.effect != "read"


_OF_TOOL: Final[dict[str, set[Kind]]] = {
    "send_email": {"send"},
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
    """Return what a tool's success may be told as; a tool from elsewhere is known by its name alone."""
    known = _OF_TOOL.get(tool)
    if known is not None:
        return known
    kinds: set[Kind] = {"write", "remind"}
    kinds |= {"send"} if next(_SENDS.finditer(tool), None) is not None else set()
    return kinds | ({"delete"} if next(_DELETES.finditer(tool), None) is not None else set())


def _sentences(text: str) -> Iterator[str]:
    return (found.group() for found in _SENTENCE.finditer(text) if found.group())
