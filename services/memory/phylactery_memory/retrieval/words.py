"""Text to index terms: accents stripped, stop words removed, every word under its English and Spanish stem.

No language detection: a word looked up under both stems is found whatever language either text is in, and typing
without accents finds the same.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Final

import Stemmer

_ENGLISH = """
a about above after again against all also am an and any are arent as at be because been before being below between
both but by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few for from further
had hadnt has hasnt have havent having he hed hell her here heres hers herself hes him himself his how hows i id if
ill im in into is isnt it its itself ive just lets me more most my myself no nor not now of off on only or other our
ours ourselves out over own same shall she shes should shouldnt so some such than that thats the their theirs them
themselves then there theres these they theyd theyll theyre theyve this those through to too under until up upon us
very was wasnt we wed well were werent weve what whats when where wheres which while who whom whos whose why will with
wont would wouldnt yes you youd youll your youre yours yourself yourselves youve
"""
_SPANISH = """
a al algo algun alguna algunas alguno algunos ante antes aquel aquella aquellas aquello aquellos aqui asi aun aunque
bajo bien cada como con contra cual cuales cualquier cuando cuanta cuantas cuanto cuantos cuya cuyas cuyo cuyos de del
desde donde dos durante e el ella ellas ello ellos en entre eran eras eres es esa esas ese eso esos esta estaba
estaban estado estais estamos estan estar estas este esto estos estoy fue fuera fueron fui ha habeis habia habian han
has hasta hay haya he hemos hubo la las le les lo los mas me mi mia mias mientras mio mios mis muy nada ni no nos
nosotras nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero poco por porque pues que
quien quienes se sean segun ser si sido siempre sin sino sobre sois somos soy su sus suya suyas suyo suyos tal tambien
tampoco tanta tantas tanto tantos te tendra tener tengo ti tiene tienen toda todas todo todos tu tus tuya tuyas tuyo
tuyos u un una unas uno unos vosotras vosotros vuestra vuestras vuestro vuestros y ya yo
"""

STOP_WORDS: Final = frozenset(_ENGLISH.split()) | frozenset(_SPANISH.split())


MAX_TERM_CHARS: Final = 48
"""A longer word is truncated: it is an address, a hash or an attack, and its beginning is distinctive enough."""

INDEX_VERSION: Final = f"2/{Stemmer.version()}"
"""The version of the term rules. An index of another version is rebuilt; otherwise words of a forgotten text could stay
in it."""

# Single bounded character classes without nesting cannot backtrack, so the standard module is safe on hostile text.
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_GROUPED = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "＇": "'", "`": "'", "´": "'"})
_DENYING = """
no not never none nobody nothing neither nor without cannot cant dont doesnt didnt isnt arent wasnt werent wont wouldnt
shouldnt couldnt havent hasnt hadnt aint nunca jamas nada nadie ninguno ninguna ningun tampoco ni sin
"""
_NEGATIONS = frozenset(_DENYING.split())
_local = threading.local()
"""A stemmer remembers the words it has stemmed, and is not thread-safe: every thread has its own."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a text: the frequency of each term, and the number of words."""

    counts: Mapping[str, int]
    length: int


def plain(text: str) -> str:
    """Return the text in lower case, without accents, with compatibility forms (ﬁ, ４) expanded."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES))
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    return text.casefold()


def words(text: str) -> Iterator[str]:
    """Yield the words of a text in order, without stop words; a number is a word, an emoji is not."""
    for found in _WORD.finditer(_GROUPED.sub("", plain(text))):
        word = found.group().removesuffix("'s").replace("'", "")[:MAX_TERM_CHARS]
        if word and word not in STOP_WORDS:
            yield word


def negated(text: str) -> bool:
    """Return True if a text contains a negation."""
    return any(found.group().replace("'", "") in _NEGATIONS for found in _WORD.finditer(plain(text)))


def stems(word: str) -> tuple[str, str]:
    """Return the word's terms: its English stem prefixed with e, its Spanish stem prefixed with s.

    The two never coincide, so every word has the same weight whether or not its stems agree. In a shared space, words
    with equal stems count half (measured on LoCoMo: R@5 .620 against .642).
    """
    english, spanish = _stemmers()
    return "e" + english.stemWord(word), "s" + spanish.stemWord(word)


def terms(text: str) -> Terms:
    """Return the terms of a text, for indexing and for queries alike."""
    counts: Counter[str] = Counter()
    length = 0
    for word in words(text):
        length += 1
        counts.update(stems(word))
    return Terms(counts, length)


def terms_of_query(query: str, *, subjects: bool = False) -> Terms:
    """Return the terms to look a query up under: its own, and the same words' in the other language.

    With ``subjects`` those of all words about the same subjects, in both languages: "my address" is where I live.
    """
    own = terms(query)
    asked = {stem for word in words(query) for stem in stems(word)}
    others = {term for stem in asked for term in _related()[subjects].get(stem, ())}
    return Terms(dict(own.counts) | dict.fromkeys(others - own.counts.keys(), 1), own.length)


@cache
def _related() -> tuple[Mapping[str, set[str]], Mapping[str, set[str]]]:
    """Return, by a word's stem in its language, the terms of the same subjects in the other one, and those in both."""
    others: dict[str, set[str]] = defaultdict(set)
    subjects: dict[str, set[str]] = defaultdict(set)
    for line in (files("phylactery_memory.retrieval") / "bilingual.txt").read_text(encoding="utf-8").splitlines():
        english, equals, spanish = line.partition("#")[0].partition("=")
        if not equals:
            continue
        in_english, in_spanish = (
            {stems(word)[0] for word in words(english)},
            {stems(word)[1] for word in words(spanish)},
        )
        for side, other in ((in_english, in_spanish), (in_spanish, in_english)):
            for stem in side:
                others[stem] |= other
                subjects[stem] |= in_english | in_spanish
    return others, subjects


def _stemmers() -> tuple[Stemmer.Stemmer, Stemmer.Stemmer]:
    """Return this thread's stemmers: PyStemmer's are not thread-safe."""
    pair: tuple[Stemmer.Stemmer, Stemmer.Stemmer] | None = getattr(_local, "pair", None)
    if pair is None:
        pair = _local.pair = (Stemmer.Stemmer("english"), Stemmer.Stemmer("spanish"))
    return pair


_ENGLISH_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_SPANISH_MONTHS = (
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day_words(time_us: int) -> str:
    """Return the UTC day, month name in both languages, and year of a time in microseconds since the epoch.

    A memory is indexed under them: people ask for "in May" and "en mayo".
    """
    day = _EPOCH + timedelta(microseconds=time_us)
    return f"{day.day} {_ENGLISH_MONTHS[day.month - 1]} {_SPANISH_MONTHS[day.month - 1]} {day.year}"
