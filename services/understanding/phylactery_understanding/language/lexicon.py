"""The vocabulary of the grammar, read from one folder per language."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from phylactery_understanding.language.text import Kind, Token, fold, tokenize
from phylactery_understanding.language.word_files import FOLDER, LexiconError, entries, lists, texts_of

SHARED: Final = ("en", "es")
"""Languages that people mix: a message in either is read with the words of both. Any other is read with its own."""
CLASSES: Final = (
    "please",
    "greet",
    "polite",
    "article",
    "goal",
    "source",
    "content",
    "reason",
    "negation",
    "exclusion",
    "condition",
    "question",
    "hypothetical",
    "report",
    "permission",
    "past",
    "future",
    "irony",
    "retraction",
    "announce",
    "idiom",
    "universal",
    "phatic",
    "stop",
    "frame",
    "aside",
    "standin",
    "thing",
    "amend",
    "again",
    "contrast",
    "link",
    "inquiry",
    "done",
    "recall",
    "unneeded",
    "lapsed",
    "look",
    "telling",
    "wish",
    "correction",
    "leaving",
    "spared",
    "fronted",
    "voiced",
    "taunt",
    "consult",
)
OPERATORS: Final = (
    "retraction",
    "irony",
    "hypothetical",
    "negation",
    "exclusion",
    "condition",
    "report",
    "permission",
    "past",
    "future",
    "announce",
    "idiom",
)
"""Classes which mean that words are not, or not yet, a request."""
_PARTED: Final = {"fronted": "condition", "voiced": "report", "taunt": "irony"}
"""Classes that are such an operator only where a part of a sentence begins: had Bob agreed; but not: we had lunch."""
_WHOLE: Final = frozenset({"taunt"})
"""Those that are one only if they are all of the part: write it, genius; but not: genius is what she is."""
_COURTEOUS: Final = ("please", "greet", "polite")
"""Classes of which a phrase as long as an operator makes it none."""
_TELLING: Final = 500
"""The number of tokens by which a message's language is detected."""
_SHORTEST: Final = 4
"""The minimum number of letters of a form that a pronoun may be joined to."""
_ENCLITIC: Final = "es"
"""The language that joins pronouns to its verbs."""
_ENCLITICS: Final = (
    "melo",
    "mela",
    "melos",
    "melas",
    "selo",
    "sela",
    "selos",
    "selas",
    "telo",
    "tela",
    "noslo",
    "nosla",
    "me",
    "te",
    "le",
    "lo",
    "la",
    "nos",
    "les",
    "los",
    "las",
    "se",
)
_JOINED: Final[Mapping[str, tuple[str, ...]]] = {
    end: tuple(one for one in _ENCLITICS if one.endswith(end)) for end in {one[-2:] for one in _ENCLITICS}
}
"""The pronouns by their last two letters, the longest first: a text may have a hundred thousand different words."""
_ACCENTED: Final = {"fr": ("e", "é"), "ca": ("a", "à")}
"""The ending of a requesting form, and that of the corresponding past form."""
_ENDINGS: Final = {
    "ar": ("a", "e", "es", "en", "as", "ar", "ad", "emos"),
    "er": ("e", "a", "as", "an", "es", "er", "ed"),
    "ir": ("e", "a", "as", "an", "es", "ir", "id", "i"),
}
_TOLD_ENDINGS: Final = {
    "ar": ("ado", "ada", "ados", "adas", "e", "o", "amos", "aron"),
    "er": ("ido", "ida", "idos", "idas", "i", "io", "imos", "ieron"),
    "ir": ("ido", "ida", "idos", "idas", "i", "io", "imos", "ieron"),
}
"""Endings of Spanish past forms, folded: cerrada, pagó."""


@dataclass(frozen=True, slots=True)
class Verb:
    """The possible meanings of a verb form, whether a pronoun is joined to it, and its language."""

    meanings: frozenset[str]
    joined: str
    language: str


@dataclass(frozen=True)
class Lexicon:
    """Verbs by their forms, and phrases of each class by their first word."""

    verbs: Mapping[str, tuple[Verb, ...]]
    phrases: Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]]
    effects: Mapping[str, frozenset[str]]
    told: frozenset[str] = frozenset()
    """Past forms that without their accent are requests: mandé, annulé."""
    done: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The meanings of past forms: closed, paid, cerrada."""

    @cached_property
    def _operator_starts(self) -> frozenset[str]:
        return frozenset(first for name in OPERATORS for first in self.phrases[name])

    @cached_property
    def _opening_starts(self) -> frozenset[str]:
        return frozenset(first for name in _PARTED for first in self.phrases[name])

    def match(self, name: str, words: Sequence[str], place: int) -> int:
        """Return how many words from a place on are one phrase of a class, 0 if none."""
        best = 0
        known = self.phrases[name].get(words[place])
        if known is None:
            return 0
        for phrase in known:
            if len(phrase) > best and tuple(words[place : place + len(phrase)]) == phrase:
                best = len(phrase)
        return best

    def longest(self, names: Iterable[str], words: Sequence[str], place: int) -> int:
        """Return how many words from a place on are the longest phrase of some classes, 0 if none."""
        return max(self.match(name, words, place) for name in names)

    def operator(self, words: Sequence[str], place: int, names: Iterable[str] = OPERATORS) -> tuple[int, str]:
        """Return the size and class of the operator that begins at a place; (0, "") if none does, or it is polite."""
        best, kind = 0, ""
        opens = words[place] in self._opening_starts and (not place or _parts(words[place - 1]))
        if not opens and words[place] not in self._operator_starts:
            return best, kind
        wanted = tuple(names)
        for name in wanted:
            size = self.match(name, words, place)
            if size > best:
                best, kind = size, name
        size, meant = self.opening(words, place) if opens else (0, "")
        if size > best and meant in wanted:
            best, kind = size, meant
        if best and self.longest(_COURTEOUS, words, place) >= best + (best == 1):
            return 0, ""
        return best, kind

    def opening(self, words: Sequence[str], place: int) -> tuple[int, str]:
        """Return the size and class of the operator that words are because a part of a sentence begins with them."""
        best, kind = 0, ""
        if words[place] not in self._opening_starts or (place and not _parts(words[place - 1])):
            return best, kind
        for name, meant in _PARTED.items():
            size = self.match(name, words, place)
            whole = place + size == len(words) or _parts(words[place + size])
            if size > best and (whole or name not in _WHOLE):
                best, kind = size, meant
        return best, kind

    def holds(self, name: str, word: str) -> bool:
        """Return True if a single word is a phrase of a class."""
        return (word,) in self.phrases[name].get(word, ())

    def holds_any(self, names: Iterable[str], word: str) -> bool:
        """Return True if a single word is a phrase of one of some classes."""
        return any(self.holds(name, word) for name in names)

    def verb(self, form: str) -> tuple[Verb, ...]:
        """Return the possible meanings of a form, after removing pronouns that Spanish joins to it."""
        found = self.verbs.get(form, ())
        if found or len(form) < _SHORTEST:
            return found
        for pronoun in _JOINED.get(form[-2:], ()):
            if form.endswith(pronoun):
                for stem in (form[: -len(pronoun)], form[: -len(pronoun)] + "r", form[: -len(pronoun)] + "s"):
                    bare = tuple(
                        Verb(one.meanings, pronoun, _ENCLITIC)
                        for one in self.verbs.get(stem, ())
                        if one.language == _ENCLITIC
                    )
                    if bare:
                        return bare
        return ()

    @cached_property
    def _yields(self) -> Mapping[str, frozenset[str]]:
        return {effect: meanings | {effect} for effect, meanings in self.effects.items()}

    def yields(self, effect: str) -> frozenset[str]:
        """Return the meanings by which a person may request an effect."""
        return self._yields.get(effect) or frozenset((effect,))


@dataclass(frozen=True)
class Lexicons:
    """The lexicon of each language; the languages in SHARED have a common one."""

    by_language: Mapping[str, Lexicon]
    known: Mapping[str, frozenset[str]]
    """Every single word of a language, for language detection."""

    @cached_property
    def _meanings(self) -> Mapping[str, frozenset[str]]:
        """The meanings of each form in the languages that list it."""
        found: dict[str, set[str]] = defaultdict(set)
        for one in self.by_language.values():
            for form, verbs in one.verbs.items():
                found[form].update(meaning for verb in verbs for meaning in verb.meanings)
        return {form: frozenset(meanings) for form, meanings in found.items()}

    def may_ask(self, form: str) -> bool:
        """Return False for most words that have no meaning as a verb, in little time."""
        return form in self._meanings or form[-2:] in _JOINED

    def meanings(self, form: str) -> frozenset[str]:
        """Return the meanings of a verb form in whatever language; a word that is none costs one look-up."""
        listed, joining = self._meanings.get(form, frozenset()), self.by_language.get(_ENCLITIC)
        if joining is None or form[-2:] not in _JOINED or form in joining.verbs:
            return listed
        return listed.union(*(verb.meanings for verb in joining.verb(form)))

    def of(self, tokens: Sequence[Token]) -> Lexicon:
        """Return the lexicon of the language that knows most of the first words, that of SHARED in case of a tie."""
        said = Counter(one.text for one in tokens[:_TELLING] if one.kind is Kind.WORD)

        def knows(name: str) -> tuple[int, bool]:
            known, verb = self.known[name], self.by_language[name].verb
            joined = name == _ENCLITIC  # the verbs of other languages are known in all their forms
            return sum(
                count
                for one, count in said.items()
                if one in known or (joined and any(form.language == name for form in verb(one)))
            ), name in SHARED

        return self.by_language[max(self.known, key=knows)]


@lru_cache(maxsize=1)
def lexicons() -> Lexicons:
    """Return the packaged lexicons. Raise LexiconError if they are invalid."""
    return read_lexicons(FOLDER)


def lexicon() -> Lexicon:
    """Return the packaged lexicon of the languages in SHARED. Raise LexiconError if it is invalid."""
    return lexicons().by_language[SHARED[0]]


def read_lexicons(folder: Path) -> Lexicons:
    """Read a folder with ``effects.yaml`` and a folder for each language, in which any file may be missing.

    Raises:
        LexiconError: a file cannot be used.
    """
    effects = {name: frozenset(more) for name, more in lists(folder / "effects.yaml")}
    homes = {one.name: one for one in sorted(folder.iterdir()) if one.is_dir()}
    shared = _read([homes[name] for name in SHARED if name in homes], effects)
    operators = [
        (name, phrase) for name in (*OPERATORS, *_PARTED) for some in shared.phrases[name].values() for phrase in some
    ]
    by_language, known = {}, {}
    for name, home in homes.items():
        own = _read([home], effects)
        known[name] = _known(own)
        # A refusal in a mixed language is one here too, unless it is a word of this language.
        foreign = [(kind, phrase) for kind, phrase in operators if not known[name].issuperset(phrase)]
        by_language[name] = shared if name in SHARED else _with(own, foreign)
    return Lexicons(by_language, known)


def _read(homes: Sequence[Path], effects: Mapping[str, frozenset[str]]) -> Lexicon:
    """Read the folders of some languages into one lexicon."""
    verbs: dict[str, dict[tuple[str, str], set[str]]] = defaultdict(lambda: defaultdict(set))
    phrases: dict[str, dict[str, set[tuple[str, ...]]]] = {name: defaultdict(set) for name in CLASSES}
    told: set[str] = set()
    done: dict[str, set[str]] = defaultdict(set)
    for home in homes:
        forms = dict(lists(home / "forms.yaml")) if (home / "forms.yaml").exists() else {}
        past = dict(lists(home / "past.yaml")) if (home / "past.yaml").exists() else {}
        known = {fold(name): tuple(map(fold, more)) for name, more in forms.items()}
        for meaning, lemmas in lists(home / "verbs.yaml") if (home / "verbs.yaml").exists() else ():
            for form, joined in _forms(lemmas, home.name, known):
                verbs[form][joined, home.name].add(meaning)
            told.update(_told(lemmas, home.name, known))
            for form in _done(lemmas, home.name, past):
                done[form].add(meaning)
        for name, more in _words(home / "words.yaml") if (home / "words.yaml").exists() else ():
            for phrase in more:
                words = _phrase(phrase)
                phrases[name][words[0]].add(words)
    return Lexicon(
        {
            form: tuple(Verb(frozenset(meanings), joined, home) for (joined, home), meanings in sorted(of_one.items()))
            for form, of_one in verbs.items()
        },
        {name: {first: tuple(sorted(some)) for first, some in of_one.items()} for name, of_one in phrases.items()},
        effects,
        frozenset(told),
        {form: frozenset(meanings) for form, meanings in done.items()},
    )


def _parts(text: str) -> bool:
    """Return True if a token may part what is before it from what is behind: a mark, or the name of a file."""
    return not text[-1:].isalnum() or "." in text


def _known(own: Lexicon) -> frozenset[str]:
    """Return every word of a lexicon by which a language is told; what only stops a request tells none."""
    of_kinds = (some for name, some in own.phrases.items() if name not in _PARTED)
    phrases = (phrase for some in of_kinds for of_one in some.values() for phrase in of_one)
    return frozenset(own.verbs) | {word for phrase in phrases for word in phrase}


def _with(own: Lexicon, more: Sequence[tuple[str, tuple[str, ...]]]) -> Lexicon:
    """Return a lexicon with additional phrases of a class."""
    phrases = {name: dict(some) for name, some in own.phrases.items()}
    for name, phrase in more:
        phrases[name][phrase[0]] = (*phrases[name].get(phrase[0], ()), phrase)
    return replace(own, phrases=phrases)


def _phrase(phrase: str) -> tuple[str, ...]:
    return tuple(token.text for token in tokenize(str(phrase))) or (str(phrase),)


def _forms(lemmas: Sequence[str], language: str, known: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    for lemma in map(fold, lemmas):
        yield lemma, ""
        if language == "es":
            endings = _ENDINGS.get(lemma[-2:], ())
            yield from ((lemma[:-2] + ending, "") for ending in endings)
            yield from ((form, "") for form in known.get(lemma, ()))
        elif language == "en" and lemma.isalpha():
            base = lemma[:-1] if lemma.endswith("e") and not lemma.endswith("ee") else lemma
            yield base + "ing", ""
            yield lemma + lemma[-1] + "ing", ""


def _told(lemmas: Sequence[str], language: str, known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return the past forms that only an accent distinguishes from a requesting form."""
    for lemma in map(fold, lemmas):
        if language == "es" and lemma.endswith("ar"):
            asking = (lemma[:-2] + "e", *known.get(lemma, ()))
            yield from (form[:-1] + "é" for form in asking if form.endswith("e"))
        elif language in _ACCENTED and lemma.endswith(_ACCENTED[language][0]):
            yield lemma[:-1] + _ACCENTED[language][1]


def _done(lemmas: Sequence[str], language: str, past: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return the past forms; ``past`` are those that do not follow from the lemma."""
    for lemma in lemmas:
        if lemma in past:
            yield from map(fold, past[lemma])
        elif language == "es":
            yield from (fold(lemma)[:-2] + ending for ending in _TOLD_ENDINGS.get(lemma[-2:], ()))
        elif language == "en" and lemma.isalpha():
            base = lemma[:-1] if lemma.endswith(("e", "y")) else lemma
            yield from (base + "ed", base + base[-1] + "ed", base + "ied")


def _words(file: Path) -> Iterator[tuple[str, Sequence[str]]]:
    for entry in entries(file):
        if entry.name not in CLASSES:
            raise LexiconError(f"{entry.where}: no class '{entry.name}'; there are: {', '.join(CLASSES)}")
        yield entry.name, texts_of(entry)
