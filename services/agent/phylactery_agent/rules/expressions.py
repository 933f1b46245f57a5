"""RE2, the only engine applied to user input: its running time is linear in the text for any input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, cast

import re2
from phylactery_understanding.language.lexicon import lexicons
from phylactery_understanding.language.text import Kind, fold, tokenize

from phylactery_agent.ports import Language


class Match(Protocol):
    """One match of an expression."""

    def group(self, number: int = 0) -> str:
        """Return a group's text."""
        ...

    def groupdict(self) -> dict[str, str | None]:
        """Return the named groups; None for a group that did not participate."""
        ...

    def span(self, number: int) -> tuple[int, int]:
        """Return where a group begins and ends; (-1, -1) if it did not participate."""
        ...

    def start(self) -> int:
        """Return the start index."""
        ...

    def end(self) -> int:
        """Return the end index."""
        ...


class Expression(Protocol):
    """A compiled expression."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """The numbers of the named groups."""
        ...

    def match(self, text: str) -> Match | None:
        """Match from the beginning."""
        ...

    def finditer(self, text: str) -> Iterator[Match]:
        """Return all matches from left to right."""
        ...

    def sub(self, replacement: str, text: str) -> str:
        """Replace every match."""
        ...


def expression(pattern: str) -> Expression:
    """Compile an RE2 expression. Raise re2.error for an invalid pattern."""
    # The binding has no type annotations; the protocols above cover the part in use.
    return cast("Expression", cast("Any", re2).compile(pattern, options=_options()))


def _options() -> Any:
    """Return RE2's options: an automaton that outgrows its memory goes on more slowly, and says nothing of it.

    By default RE2 writes a line about it to standard error, whatever the process logs.
    """
    options = cast("Any", re2).Options()
    options.log_errors = False
    return options


class ExpressionSet:
    """Expressions that are matched together, in one pass over a text."""

    _MEMORY: Final = 64 * 1024 * 1024
    """The upper bound of what the automaton may take, in bytes; RE2 begins it anew when it is reached."""

    def __init__(self, patterns: Sequence[str]) -> None:
        options = _options()
        options.max_mem = self._MEMORY
        self._set = cast("Any", re2).Set.SearchSet(options)
        for pattern in patterns:
            self._set.Add(pattern)
        self._set.Compile()

    def matches(self, text: str) -> frozenset[int]:
        """Return the places of the expressions that match a text."""
        return frozenset(self._set.Match(text) or ())


_WORD = expression(r"\pL+")
_SPANISH_LETTERS: Final = frozenset("ñ¿¡áéíóúü")
_SPANISH_WORDS: Final = """
el la los las un una de del en y o a al que qué con para por favor se me mi lo es está hola gracias adiós adios buenos
buenas días dias tardes noches luego después despues lee leer léeme muestra muéstrame enseña abre escribe guarda graba
añade agrega anexa repite eco di fichero archivo salida resultado contenido desde hasta puedes quién eres ayuda sigue
continúa continua sí vale aprobar rechazar cómo como estás recuerda recuerdas recordar
memoria sabes olvides anota apunta busca buscar encuentra recupera recuperar vivo prefiero descarga visita
envía envia manda correo recuérdame recuerdame avísame avisame recordatorio recordatorios mañana lista archivos carpeta
cancela haz hazme dame dime quiero necesito esto eso este esta muy más hay tengo tienes cuándo cuánto dónde sobre
deshaz deshacer último cambio vuelve versión anterior restaura existe pon ponme borra elimina renombra mueve copia vacía
vacia rehaz también tambien mejor perdón perdon quería queria decir otra vez ahora hoy hora día llamo gusta jaja déjalo
"""
_ENGLISH_WORDS: Final = """
the a an of in on and or to into that what with for please is are me my it hello hi hey thanks thank you bye goodbye
good morning evening afternoon then after read show display open cat write save store append add echo repeat say file
output contents content from until can could who help continue go yes approve reject how remember recall memory
search find rehydrate bring back about know my forget note i fetch get download visit send email remind reminder
reminders tomorrow list files folder cancel do does did make give tell you your this these those want need when where
which why not have undo last change restore previous version revert exist redo put empty delete remove rename move copy
clear too also same better sorry meant mean actually again never mind now today time day ok lol like at was
"""
_SPANISH: Final = frozenset(_SPANISH_WORDS.split())
_ENGLISH: Final = frozenset(_ENGLISH_WORDS.split())


@lru_cache(maxsize=1)
def _words_of_one_language() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words that only the Spanish lexicon has, and those that only the English one has."""
    known = lexicons().known
    return known["es"] - known["en"], known["en"] - known["es"]


_ALONE: Final = frozenset(
    [
        "hola",
        "gracias",
        "adiós",
        "adios",
        "sí",
        "si",
        "vale",
        "claro",
        "perfecto",
        "listo",
        "buenas",
        "bueno",
        "genial",
        "dale",
        "oye",
        "ayuda",
        "perdón",
        "perdon",
        "chao",
        "chau",
        "hasta",
        "hello",
        "hi",
        "hey",
        "thanks",
        "thank",
        "yes",
        "yeah",
        "yep",
        "sure",
        "bye",
        "please",
        "sorry",
        "great",
        "goodbye",
        "help",
        "morning",
    ]
)
"""Words of one language that tell it also alone, or before a name: hola, thanks Bob."""
_PARTICLES: Final = frozenset("of the and de del la las los el y e van von da do at & st".split())  # noqa: SIM905
_MOST_OF_A_NAME: Final = 6
_SENTENCE: Final = 3
"""Words of which rare ones tell another language than has been spoken: fewer are a thing's foreign name."""


def _telling_words(text: str) -> list[str]:
    """Return the words of a text that can tell its language: none of a quotation, an address, a file name or a name."""
    plain = " ".join(
        token.raw if token.kind is not Kind.QUOTE else ","
        for token in tokenize(text.lower() if text.isupper() else text)
        if token.kind not in {Kind.LITERAL, Kind.NUMBER} and not any(char.isdigit() for char in token.raw)
    )
    words = [word.group() for word in _WORD.finditer(plain)]
    capitals = [word[0].isupper() for word in words]
    named = all(capital or word in _PARTICLES for word, capital in zip(words, capitals, strict=True))
    if words and named and any(capitals) and len(words) <= _MOST_OF_A_NAME:  # New York, Los Amigos, Hola Ana
        return [word.lower() for word in words[:1] if word.lower() in _ALONE]
    return [word.lower() for at, word in enumerate(words) if at == 0 or not word[0].isupper() or word == "I"]


def detect_language(text: str, fallback: Language = "es", *, steady: bool = False) -> Language:
    """Return the language with more indicators in the text, or fallback on a tie.

    With ``steady`` fallback is what has been spoken so far: a single word tells another language only where it is one
    that people say alone, and rare words do not.
    """
    words = _telling_words(text)
    spanish = sum(word in _SPANISH for word in words)
    spanish += sum(letter in _SPANISH_LETTERS for word in words for letter in word)
    spanish += sum(mark in text for mark in "¿¡") if words else 0
    english = sum(word in _ENGLISH for word in words)
    if steady and len(words) == 1 and sum(1 for _ in _WORD.finditer(text)) == 1:
        return _more(spanish, english, fallback) if words[0] in _ALONE else fallback
    if spanish == english and (not steady or len(words) >= _SENTENCE):
        return _by_rare_words(words, fallback)  # which the lexicons know in one language only
    return _more(spanish, english, fallback)


def _by_rare_words(words: Sequence[str], fallback: Language) -> Language:
    only_spanish, only_english = _words_of_one_language()
    spanish = sum(fold(word) in only_spanish for word in words)
    return _more(spanish, sum(fold(word) in only_english for word in words), fallback)


def _more(spanish: int, english: int, fallback: Language) -> Language:
    if spanish == english:
        return fallback
    return "es" if spanish > english else "en"
