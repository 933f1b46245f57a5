"""Words that take back what was done last and say more than "undo": everything, the reminder, what you just wrote.

The lists are closed. Whatever is read here takes back what the last turn did, or asks: what the words name is compared
with that, so that no more is taken back than was meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.spelling import unaccented
from phylactery_agent.rules.wording import without_lead, without_tail
from phylactery_agent.tools.specs import CANCEL_REMINDER, CREATE_REMINDER, REMEMBER, WRITE_FILE

UNDO_WHICH: Final = "undo_which"
UNDO_NONE: Final = "undo_none"
UNDO_EXCEPT: Final = "undo_except"
"""The replies to words that name something else than what was done last, where there is nothing of low stakes, and to
those that leave something out: nothing is taken back then, as the undo of a turn takes back all of it."""
_UNDO: Final = r"(?:undo|revert|take\s+back|roll\s+back|deshaz|deshace|deshacer|deshaga|revierte|revertir|anula|anular)"
_REMOVE: Final = (
    r"(?:remove|delete|cancel|get\s+rid\s+of|quita|quitar|quitame|borra|borrar|borrame|elimina|eliminar|saca|cancela"
    r"|cancelar)"
)
_DID: Final = (
    r"what(?:ever)?\s+you(?:['’]ve|\s+have)?\s+(?:just\s+)?(?:did|done)(?:\s+(?:just\s+now|last))?"
    r"|(?:todo\s+)?lo\s+que\s+(?:me\s+)?(?:acab[ao]s?\s+de\s+hacer|has\s+hecho|hiciste|hizo)"
)
_MADE: Final = (
    r"(?:what(?:ever)?|the\s+things?)\s+you(?:['’]ve|\s+have)?\s+(?:just\s+)?"
    r"(?P<made>wrote|written|put|added|saved|set(?:\s+up)?|created|made|changed|noted|stored)(?:\s+(?:in\s+)?there|\s+just\s+now)?"
    r"|(?:todo\s+)?lo\s+que\s+(?:me\s+)?(?:acabas\s+de\s+(?P<hacer>poner|escribir|guardar|crear|a[nñ]adir|agregar|apuntar|anotar"
    r"|cambiar|programar|meter)|has\s+(?P<hecho>puesto|escrito|guardado|creado|a[nñ]adido|agregado|apuntado|anotado|cambiado"
    r"|programado|metido)|(?P<hizo>pusiste|escribiste|guardaste|creaste|a[nñ]adiste|agregaste|apuntaste|anotaste|cambiaste|metiste))"
    r"(?:\s+(?:ahi|alli|ahora))?"
)
_ALL: Final = (
    r"everything|(?:it\s+)?all|all\s+(?:of\s+)?(?:it|that|this|them|those)|both(?:\s+of\s+(?:them|those))?"
    r"|them(?:\s+(?:all|both))?|the\s+(?:whole\s+(?:thing|lot)|lot)"
    r"|todo(?:\s+(?:eso|esto|lo\s+(?:anterior|ultimo|de\s+antes)))?|todos|todas|ambos|ambas|l[ao]s\s+dos(?:\s+cosas)?"
)
_KIND: Final = (
    r"(?:the|that|this|those|these|my|your|both|both\s+the|all\s+(?:the|my|those)|el|la|los|las|ese|esa|esos|esas|este|esta"
    r"|mi|mis|lo\s+del?|lo\s+de\s+l[ao]s?|lo\s+de\s+los|todos\s+(?:los|mis))\s+"
    r"(?:(?:last|new|two|ultim[oa]s?|nuev[oa]s?|dos)\s+)?(?P<thing>\pL+)"
    r"(?P<by_you>\s+(?:you\s+(?:just\s+)?(?:set|made|created|wrote|saved)|que\s+(?:acabas\s+de\s+\pL+|has\s+\pL+)))?"
)
_EVERYTHING: Final = expression(
    rf"(?i)^(?:{_UNDO}\s+(?:{_ALL}|{_DID}|everything\s+you(?:['’]ve)?\s+(?:just\s+)?(?:did|done))"
    rf"|(?:{_REMOVE}|reverse)\s+(?:{_DID})"
    rf"|take\s+(?:it|that|this|{_ALL})\s+back)[\s.!]*$"
)
_JUST_MADE: Final = expression(rf"(?i)^(?:{_UNDO}|{_REMOVE})\s+(?:{_MADE})[\s.!]*$")
_OF_A_KIND: Final = expression(
    rf"(?i)^(?:(?P<verb>{_UNDO})\s+{_KIND}|take\s+(?:the|that|this|my)\s+(?P<taken>\pL+)\s+back)[\s.!]*$"
)
_OF_A_FILE: Final = expression(
    rf"(?i)^{_UNDO}\s+(?:(?:the|my|your|that)\s+(?:changes?|write|edit)\s+(?:to|in|of)|lo\s+de|(?:el|los|ese)\s+cambios?"
    r"\s+(?:de|en))\s+(?P<path>[^\s\"'«»“”:,]+\.\w{1,8})[\s.!]*$"
)
_EXCEPT: Final = expression(
    rf"(?i)^(?:{_UNDO}\s+(?:{_ALL}|{_DID}|everything\s+you(?:['’]ve)?\s+(?:just\s+)?(?:did|done)|(?:(?:all|todos)\s+)?(?:the\s+|los\s+)?(?:changes|cambios))"
    rf"|(?:{_REMOVE}|reverse)\s+(?:{_DID})|take\s+(?:{_ALL})\s+back),?\s+(?:(?:all\s+)?but|except(?:\s+for)?|apart\s+from|save\s+for|other\s+than|excluding|leaving\s+out"
    r"|without|menos|salvo|excepto|exceptuando|a\s+excepcion\s+de|aparte\s+de|quitando|dejando|sin)\s+\S.*$"
)
_REMINDERS: Final = frozenset({CREATE_REMINDER.name, CANCEL_REMINDER.name})
_FILES: Final = frozenset({WRITE_FILE.name})
_ANY: Final = frozenset({*_REMINDERS, *_FILES, REMEMBER.name})
_CANCELLED: Final = frozenset({CANCEL_REMINDER.name})
"""What made nothing: to undo it sets a reminder again, which nobody means who takes back what was set or written."""
_TWO: Final = expression(r"(?i).*\b(?:both|two|dos|ambos|ambas)\b")
_VERBS: Final = {
    **dict.fromkeys(("wrote", "written", "escribir", "escrito", "escribiste"), _FILES),
    **dict.fromkeys(("set", "programar", "programado"), _REMINDERS - _CANCELLED),
    **dict.fromkeys(("changed", "cambiar", "cambiado", "cambiaste"), _ANY),
}
"""What was done by a verb; any other may have made anything."""
_THINGS: Final = {
    **dict.fromkeys(("reminder", "alarm", "recordatorio", "aviso", "alarma"), _REMINDERS),
    **dict.fromkeys(("file", "document", "list", "text", "archivo", "fichero", "documento", "lista", "texto"), _FILES),
    **dict.fromkeys(("memory", "fact", "recuerdo"), frozenset({REMEMBER.name})),
    **dict.fromkeys(("note", "nota"), _FILES | {REMEMBER.name}),
    **dict.fromkeys(("change", "cambio"), _ANY),
}


@dataclass(frozen=True, slots=True)
class UndoWords:
    """What is to be taken back: everything, one file's last change, or what tools of a kind did last.

    ``tools`` is empty for everything; ``several`` says that more than one thing of the kind may be meant, and ``count``
    how many, 0 for any number. ``excepts`` says that they leave something out.
    """

    tools: frozenset[str] = frozenset()
    several: bool = True
    path: str = ""
    count: int = 0
    excepts: bool = False

    def fits(self, done: tuple[str, ...]) -> bool:
        """Return True if taking back everything of these tools takes back no more than was meant."""
        counted = self.count in {0, len(done)} and (self.several or len(done) == 1)
        return counted and (not self.tools or self.tools.issuperset(done))


def read_undo(text: str) -> UndoWords | None:
    """Return what the words take back, or None if they are no such words as a whole."""
    plain = unaccented(without_tail(without_lead(text.strip()))).strip()
    if _EXCEPT.match(plain):
        return UndoWords(excepts=True)
    count = 2 if _TWO.match(plain) else 0
    if _EVERYTHING.match(plain):
        return UndoWords(count=count)
    if (found := _JUST_MADE.match(plain)) is not None:
        verb = "".join(one or "" for one in found.groupdict().values()).lower().split()[0]
        return UndoWords(_VERBS.get(verb, _ANY - _CANCELLED), several=False)
    if (found := _OF_A_FILE.match(plain)) is not None:
        return UndoWords(_FILES, path=found.groupdict()["path"] or "")
    said = {} if (found := _OF_A_KIND.match(plain)) is None else found.groupdict()
    thing = (said.get("thing") or said.get("taken") or "").lower()
    one = next(
        (name for name in (thing, thing.removesuffix("s"), thing.removesuffix("ies") + "y") if name in _THINGS), ""
    )
    if not one:
        return None
    makes = said.get("by_you") or (said.get("verb") or "").lower().startswith("anul")  # anula may say: cancel it
    return UndoWords(_THINGS[one] - _CANCELLED if makes else _THINGS[one], several=one != thing, count=count)
