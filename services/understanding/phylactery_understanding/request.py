"""Parser for messages: splits a message into asks, and labels every word.

A parse is either complete or it fails: every token of an ask is a verb, a goal, content, a filler or an operator that
the grammar knows. The names in a message are open; to whom, whether and how something is said is a closed set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import takewhile
from typing import Final

from phylactery_understanding.language.lexicon import OPERATORS, Lexicon, Verb, lexicon, lexicons
from phylactery_understanding.language.numbers import value_of
from phylactery_understanding.language.text import (
    MAX_TOKENS,
    Kind,
    Token,
    is_disguised,
    is_strange_mark,
    tokenize,
    written,
)
from phylactery_understanding.language.times import Times, read_times


class Label(StrEnum):
    """The role assigned to a token."""

    VERB = "verb"
    FILLER = "filler"
    ARTICLE = "article"
    GOAL = "goal"
    """A preposition that introduces a goal."""
    SOURCE = "source"
    """A preposition and its object that are a source, a comparison or a reason, and never a goal."""
    OBJECT = "object"
    CONTENT = "content"
    QUOTE = "quote"
    TIME = "time"
    REASON = "reason"
    OPERATOR = "operator"
    STATEMENT = "statement"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why words are not understood: an operator of a class, and the words that express it."""

    kind: str
    words: str


@dataclass(slots=True)
class Ask:
    """One request: a clause with its verb, and a label for each of its tokens.

    ``verbatim`` says that its content follows a colon; ``refers`` that a pronoun is its object; ``there`` that a file
    is called "that one", one of ``files`` that the message names before; ``before`` is the statement before it,
    ``previous`` the ask that its pronoun may refer to; ``fault`` is the reason why it is not a request after all.
    """

    verb: Verb
    form: str
    tokens: list[Token]
    labels: list[Label]
    times: Times
    lexicon: Lexicon
    verbatim: bool = False
    refers: bool = False
    there: bool = False
    files: tuple[Token, ...] = ()
    before: tuple[Token, ...] = ()
    topic: Token | None = None
    previous: Ask | None = None
    fault: Fault | None = None

    def joined(self) -> Ask | None:
        """Return the ask combined with the one its pronoun refers to: make a list, and put it in a.txt."""
        first = self.previous
        if first is None:
            return None
        return Ask(
            Verb(self.verb.meanings | first.verb.meanings, self.verb.joined, self.verb.language),
            self.form,
            [*first.tokens, *self.tokens],
            [*first.labels, *self.labels],
            Times(
                first.times.features | self.times.features,
                first.times.places | {place + len(first.tokens) for place in self.times.places},
            ),
            self.lexicon,
            verbatim=self.verbatim or first.verbatim,
            before=first.before,
            topic=self.topic,
            fault=first.fault or self.fault,
        )

    def of(self, *labels: Label) -> Iterator[Token]:
        """Return the tokens with a label."""
        return (token for token, label in zip(self.tokens, self.labels, strict=True) if label in labels)


@dataclass(slots=True)
class Request:
    """The asks of one message. ``fault`` is about the whole message; ``numbered``: its tasks have numbers."""

    text: str
    tokens: list[Token]
    asks: list[Ask] = field(default_factory=list)
    statements: list[list[Token]] = field(default_factory=list)
    fault: Fault | None = None
    lexicon: Lexicon = field(default_factory=lexicon)
    numbered: bool = False

    @property
    def complete(self) -> bool:
        """Return True if every token was placed."""
        return self.fault is None

    def trace(self) -> list[tuple[str, str]]:
        """Return every token with its label."""
        labels = {
            id(token): str(label) for ask in self.asks for token, label in zip(ask.tokens, ask.labels, strict=True)
        }
        return [
            (one.raw, labels.get(id(one), str(Label.STATEMENT))) for one in self.tokens if one.kind is not Kind.BREAK
        ]


COMMUNICATING: Final = frozenset(
    """
    send tell ask notify reply comment post publish message forward remind remember record announce report greet
    request learn wake share pass
    """.split()
)
"""Meanings of verbs after which "that", "if" and "how" introduce the content."""
COMPOSING: Final = frozenset(
    {"write", "compose", "create", "make", "draft", "add", "put", "edit", "schedule", "open", "book"}
)
_SENTENCE_ENDS: Final = frozenset(".!?…;¡¿")
_OF_THINGS: Final = frozenset({"compose", "make"})
ARTIFACTS: Final = frozenset(
    """
    list table poem haiku story letter summary report script draft plan outline speech toast essay recipe note
    notes function page template agenda minutes review joke song limerick paragraph program schedule checklist
    ideas questions bio menu itinerary code version readme invitation complaint explanation gist overview
    comparison timetable budget quiz tips tagline slogan logo names options suggestions translation headline
    caption post guide exercise exercises lista tabla poema cuento historia carta resumen informe guion borrador
    esquema discurso ensayo receta nota funcion pagina plantilla acta chiste cancion parrafo programa horario
    rutina preguntas respuesta biografia itinerario codigo invitacion queja explicacion eslogan lema comparacion
    presupuesto calendario cuestionario consejos peliculas pelis redaccion reporte traduccion nombres opciones
    sugerencias ejercicios saludo felicitacion dialogo titulares
    """.split()
)
"""Things that are created on request: their content is left to the creator."""
_CONNECTORS: Final = frozenset(
    """
    and y e then luego despues & + plus ademas but pero et und i
    """.split()
)
_PAUSES: Final = frozenset({",", ";", "(", ")", "–", "—", "…", "-", "*", "•"})
_PRONOUNS: Final = frozenset(
    """
    me te le les lo la los las nos se it that this them eso esto
    """.split()
)
_STANDING: Final = frozenset(
    {"it", "that", "this", "them", "those", "these", "eso", "esto", "lo", "la", "los", "las", "ello"}
)
_RELATIVE: Final = frozenset({"que", "q", "that", "which", "who", "whose", "where", "donde", "cuando", "when"})
_OPENERS: Final = frozenset(
    """
    si if whether how what why where who when which como que cual cuando donde quien cuanto cuantos cuanta
    cuantas
    """.split()
)
_IF: Final = frozenset({"if", "si"})
_HARD: Final = frozenset({"irony", "retraction", "hypothetical", "announce", "idiom"})
"""Operators that apply anywhere except in a quotation."""
_LEADING: Final = frozenset({"irony", "retraction", "announce"})
"""Operators that apply in a sentence before the request."""
_REACH: Final = 40
"""The number of tokens allowed before the verb of a request."""
_MOST_ASKS: Final = 40
_EMPTY: Final = frozenset(
    """
    ever never again please under any circumstances circumstance way case at all you to want dare i repeat
    nunca jamas bajo ningun ninguna concepto circunstancia caso modo manera quiero que te por favor repito mas
    """.split()
)
"""Words after a negation that it does not negate."""
INVERTED: Final = frozenset({"should"})
"""Words that always begin a condition: should it rain."""
_SAME: Final = frozenset({"that", "this", "same", "ese", "esa", "este", "esta", "mismo", "misma"})
_ALIKE: Final = frozenset({"same", "mismo", "misma", "mismos", "mismas"})
_AS: Final = frozenset({"as", "que"})
"""With one of these words before it: the same guests as."""
_FILES: Final = frozenset("file list doc document note notes archivo fichero lista documento nota notas".split())
"""Words after these that refer to a file named before: in that file."""
_WHERE: Final = frozenset({"in", "on", "en"})
"""Prepositions of a place that is named before the verb."""
_LEAD: Final = 7
"""The number of words of a place that is named before the verb."""
_LONGEST_TIME: Final = 12
"""The number of words of a time that is said before the verb."""
_SMALL: Final = ("please", "article", "stop", "phatic")
_FRONT: Final = 8
_TASKS: Final = frozenset("task tasks following steps tareas tarea siguiente siguientes pasos perform do".split())
"""Words of a heading which says only that the lines below are to be done."""
_HELLO: Final = frozenset(
    "hi hello hey hola buenas buenos dear querido querida estimado estimada hallo ciao oi".split()
)
_COURTEOUS: Final = ("please", "greet", "article", "stop")
_HEADING: Final = 4
"""The maximum number of words of a heading that describes the lines below."""
_PLACES: Final = 2
"""The maximum number of digits of a list number."""
_SPEAKER_WORDS: Final = 3
_TURNING: Final = frozenset({"convert", "translate", "summarize", "copy", "rename"})
"""Meanings of verbs whose first words are the object, if a goal follows."""
_HELD: Final = frozenset(
    {"que", "q", "what", "what's", "whatever", "that", "contents", "content", "contenido", "inside"}
)
"""Words for what a file holds: what is in a.txt, lo que hay en a.txt."""
_THIS: Final = frozenset({"this", "these", "esto", "estos", "estas", "following", "siguiente"})
"""Words for a text that follows the request."""
_BECAUSE: Final = frozenset({"because", "porque", "since", "cause", "cuz", "xq", "pq", "porq", "coz"})
"""Words after which a negation does not apply to the request."""
_EXCUSED: Final = frozenset({"negation", "past", "future"})
_UNSETTLED: Final = frozenset(
    """
    want wants need needs keep keeping wait decide decides doubt doubts dudo dudado myself himself herself
    instead split against mistake first each arrepiento pienso piensa duda dudas decide quiere quiero quieren
    necesito primero veremos haga error espera esperar
    """.split()
)
"""Words in a reason by which it is not just a reason: we need it open, Bob decides, I doubt it."""
_MAY_I: Final = (["you", "can"], ["u", "can"], ["you", "could"], ["you", "should"], ["we", "should"])
"""Openings that are polite, and in a question ask for permission."""
_TOLD_ENDINGS: Final = ("é", "í", "ó")
"""Endings of past verb forms: terminé, comí, llegó."""
_THANKS: Final = frozenset("thanks thx cheers please ty ta gracias porfa muchas saludos".split())
_PARTS: Final = frozenset(
    """
    description subject title body message text location recipient address email amount price date time name
    reference concept columns topics topic total asunto titulo descripcion mensaje texto importe concepto
    destinatario correo direccion precio fecha hora nombre columnas temas tema cuenta account
    """.split()
)
"""Things that a sentence after a request may specify."""
_SUBJECTS: Final = frozenset(
    "i i'm i'll i've i'd we we're we'll we've we'd he he's he'll he'd she she's she'll she'd they they're they'll it's "
    "it'll there's you you're you'll".split()
)
"""Words that begin reported content without "that"."""
_TELLING_MORE: Final = frozenset({"son", "es", "it's", "its", "they're", "that's"})
"""Words by which a sentence after a request specifies it."""


def parse(text: str) -> Request:
    """Parse a message. Anything that cannot be placed makes it not understood."""
    tokens = tokenize(text)
    return _Parser(Request(text, tokens, lexicon=lexicons().of(tokens))).parse()


@dataclass(frozen=True, slots=True)
class _Joint:
    """A run of pauses and connectors between two clauses: where it ends, and what it holds."""

    end: int
    pause: bool = False
    then: bool = False


class _Parser:
    """A left-to-right parser for one message."""

    def __init__(self, request: Request) -> None:
        self._words, self._request = request.lexicon, request
        self._before: list[Token] = []
        self._topic: Token | None = None
        self._sentence_now: Sequence[Token] = ()
        self._numbers: set[int] = set()
        """Numbers that end a sentence, as those of a list on one line may."""

    def parse(self) -> Request:
        request = self._request
        if len(request.tokens) >= MAX_TOKENS:
            request.fault = Fault("length", "")
            return request
        if is_disguised(request.text):
            request.fault = Fault("disguise", "")
            return request
        sentences = list(_sentences(request.tokens))
        place = 0
        while place < len(sentences):
            if len(request.asks) > _MOST_ASKS:
                request.fault = Fault("length", "")
                break
            place += self._sentence(sentences, place)
        strange = self._strange_mark()
        if strange:
            request.fault = request.fault or Fault("mark", strange)
        return request

    def _strange_mark(self) -> str:
        """Return an unusual mark between words outside of literal text, or an empty string."""
        verbatim = {id(token) for ask in self._request.asks if ask.verbatim for token in ask.of(Label.CONTENT)}
        marks = [one.raw for one in self._request.tokens if one.kind is Kind.MARK and id(one) not in verbatim]
        commented = any(first + second in {"/*", "<!"} for first, second in itertools.pairwise(marks))
        return "/*" if commented else next((one for one in marks if is_strange_mark(one)), "")

    def _sentence(self, sentences: Sequence[list[Token]], place: int) -> int:
        """Parse one sentence, and following ones that are its content; return how many."""
        tokens = self._sentence_now = sentences[place]
        question = any(one.text == "?" for one in tokens)
        said = [one for one in tokens if one.kind is not Kind.BREAK and one.text not in _SENTENCE_ENDS]
        if not said:
            if question and self._request.asks:  # do it!?
                self._request.asks[-1].fault = self._request.asks[-1].fault or Fault("question", "?")
            return 1
        if self._is_number_of(said, tokens, last=place + 1 == len(sentences)):
            return 1
        if self._topic_of(said):
            said = said[2:]
            if not said:
                return 1
        if self._is_heading(tokens, said, sentences[place + 1 :]):
            self._request.fault = self._request.fault or Fault("report", said[-1].text)
        clauses = self._clauses(said)
        first = len(self._request.asks)
        for number, clause in enumerate(clauses[: _MOST_ASKS + 1]):
            self._clause(clause, question=question, joined=number + 1 < len(clauses))
        asks = self._request.asks[first:]
        if asks and self._takes_quote(asks[-1], sentences[place + 1 :]):
            return 2
        if asks and self._awaits(asks[-1], sentences[place + 1 :]):
            asks[-1].verbatim = True
            return 1 + self._take_rest(asks[-1], sentences[place + 1 :], at_line=True)
        if asks and asks[-1].verbatim:
            return 1 + self._take_rest(asks[-1], sentences[place + 1 :], at_line=not list(asks[-1].of(Label.CONTENT)))
        return 1

    def _is_heading(self, tokens: Sequence[Token], said: Sequence[Token], later: Sequence[list[Token]]) -> bool:
        """Return True if a short line describes the lines below it: Things I refuse to do."""
        below = any(one.kind is Kind.BREAK for one in (later[0] if later else ())[:1])
        texts = [one.text for one in said]
        words = [one.text for one in said if one.kind is Kind.WORD]
        small = all(one in _TASKS or any(self._size(name, [one], 0) for name in _COURTEOUS) for one in words)
        ends = tokens[-1].text in _SENTENCE_ENDS or texts[-1] == ","
        short = len(said) <= _HEADING or texts[-1] == ":"
        if not below or ends or small or texts[0] in _HELLO or self._request.asks or not short:
            return False
        return self._verb_at(said, 0) is None and any(one.kind is Kind.WORD for one in said)

    def _awaits(self, ask: Ask, later: Sequence[list[Token]]) -> bool:
        """Return True if the text that an ask calls "this" follows it, on separate lines."""
        if ask.fault is not None or ask.verbatim or ask.before or not later or any(ask.of(Label.CONTENT, Label.QUOTE)):
            return False
        named = not _THIS.isdisjoint(one.text for one in ask.tokens)
        return named and any(one.kind is Kind.BREAK for one in later[0][:1])

    def _takes_quote(self, ask: Ask, later: Sequence[list[Token]]) -> bool:
        """Use a quotation that begins the next sentence as the text that an ask announces as following."""
        first = [one for one in (later[0] if later else ()) if one.kind is not Kind.BREAK][:1]
        if ask.fault is not None or not first or first[0].kind is not Kind.QUOTE or any(ask.of(Label.QUOTE)):
            return False
        if _THIS.isdisjoint(one.text for one in ask.tokens):
            return False
        if any(
            one.kind not in {Kind.MARK, Kind.BREAK} and one.text not in _THANKS
            for one in later[0]
            if one is not first[0]
        ):
            return False
        ask.tokens.extend(later[0])
        ask.labels.extend(
            Label.QUOTE if one is first[0] else Label.FILLER if one.kind is Kind.WORD else Label.MARK
            for one in later[0]
        )
        return True

    def _is_number_of(self, said: Sequence[Token], tokens: Sequence[Token], *, last: bool) -> bool:
        """Return True if a sentence is only the list number of the next one, and follows another number."""
        number = said[-1].text if said[-1].kind is Kind.NUMBER and tokens[-1].text == "." else ""
        if not number.isdecimal() or len(number) > _PLACES:
            return False
        follows = int(number) - 1 in self._numbers
        self._numbers.add(int(number))
        if len(said) == 1 and follows and not last:
            self._request.numbered = True
            return True
        return False

    def _topic_of(self, said: Sequence[Token]) -> bool:
        """Return True if a sentence begins with its topic: notes.txt."""
        if len(said) > 1 and said[0].kind is Kind.LITERAL and said[1].text == ":":
            self._topic = said[0]
            return True
        return False

    def _take_rest(self, ask: Ask, later: Sequence[list[Token]], *, at_line: bool) -> int:
        """Use the text after a colon as content, up to the end of the line, or of the message if it begins a line."""
        count = 0
        for sentence in later:
            if any(one.kind is Kind.BREAK for one in sentence[:1]) and not at_line:
                break
            ask.tokens.extend(sentence)
            ask.labels.extend(Label.CONTENT if one.kind is not Kind.BREAK else Label.MARK for one in sentence)
            count += 1
        return count

    def _clauses(self, said: Sequence[Token]) -> list[list[Token]]:
        """Split a sentence where another request may begin."""
        clauses: list[list[Token]] = [[]]
        place = 0
        asked = False
        verbatim = False
        begins = 0
        joints = self._joints(said)
        while place < len(said):
            token = said[place]
            joint = joints[place]
            cut = joint.end
            lone = len(clauses[-1]) == 1 and bool(self._verbs_of(clauses[-1][0].text))
            if (
                cut > place
                and not verbatim
                and clauses[-1]
                and not lone
                and not (place - begins <= _LONGEST_TIME and self._is_time(said[begins:place]))
                and self._begins(said, joint, asked=asked)
            ):
                clauses.append([])
                place = begins = cut
                asked = True
                continue
            if not clauses[-1] and self._verb_at(said, place) is not None:
                asked = True
            verbatim = verbatim or (token.text == ":" and asked)
            clauses[-1].append(token)
            place += 1
        return [clause for clause in clauses if clause]

    def _is_time(self, said: Sequence[Token]) -> bool:
        """Return True if words are only a time, so that the words after them belong to the same clause."""
        return read_times(said).places.issuperset(range(len(said)))

    def _connects(self, word: str) -> bool:
        """Return True if a word joins two clauses; "i" does in Catalan, unless it is the English pronoun."""
        return word in _CONNECTORS and not (word == "i" and self._words.holds("article", word))

    def _joints(self, said: Sequence[Token]) -> list[_Joint]:
        """Return for each place the joint that begins there; read from the end, so that a long one costs no more."""
        joints: list[_Joint] = []
        after = _Joint(len(said))
        for place in range(len(said) - 1, -1, -1):
            text = said[place].text
            pause = text in _PAUSES
            if pause or self._connects(text):
                after = _Joint(after.end, after.pause or pause, after.then or text in {"then", "luego", "despues"})
            else:
                after = _Joint(place)
            joints.append(after)
        return joints[::-1]

    def _begins(self, said: Sequence[Token], joint: _Joint, *, asked: bool) -> bool:
        found = self._verb_at(said, joint.end, near=True)
        if found is None:
            return False
        verb = self._verbs_of(said[found].text)
        if any(one.joined for one in verb) or (joint.pause and found > joint.end):
            return True
        if asked:
            return True
        return (joint.pause and any(one.language == "en" for one in verb)) or (joint.then and joint.pause)

    def _verbs_of(self, form: str) -> tuple[Verb, ...]:
        return self._words.verb(form)

    def _verb_at(self, said: Sequence[Token], place: int, *, near: bool = False) -> int | None:
        """Return the position of the verb of a request that begins at a place; ``near`` allows little before it."""
        begin, said = place, said[place : place + _REACH]
        found = self._verb_within(said, near=near)
        return None if found is None else begin + found

    def _verb_within(self, said: Sequence[Token], *, near: bool) -> int | None:
        texts = [one.text for one in said]
        place = 0
        while place < len(said):
            token = said[place]
            if size := self._size("recall", texts, place):
                return place + size - 1
            if written(token.raw) in self._words.told or (token.raw.endswith("í") and "ya" in texts[:place]):
                return None
            if token.text == "di" and texts[place - 1 : place] and texts[place - 1] in _PRONOUNS:
                return None  # ya se los di: an order has its pronouns after it
            if token.text == "back" and "up" not in texts[place + 1 : place + _LEAD]:
                return None
            if token.kind is Kind.WORD and self._verbs_of(token.text):
                size = max(self._size("polite", texts, place), self._size("greet", texts, place))
                filler = self._size("please", texts, place)
                verb_next = place + filler < len(said) and filler
                if size > 1 or (filler > 1):
                    place += max(size, filler)
                    continue
                if filler and verb_next and any(self._verbs_of(one) for one in texts[place + 1 : place + 4]):
                    place += 1
                    continue
                return place
            size = self._lead(said, texts, place, near=near)
            if not size:
                return None
            place += size
        return None

    def _lead(self, said: Sequence[Token], texts: Sequence[str], place: int, *, near: bool) -> int:
        """Return how many tokens from a place on may precede a verb."""
        token = said[place]
        sizes = [self._size(name, texts, place) for name in ("please", "polite", "greet")]
        if max(sizes):
            return max(sizes)
        if token.text == "se" and texts[place + 1 : place + 2] not in (["lo"], ["la"], ["los"], ["las"]):
            return 0
        if token.text in _PRONOUNS or token.text in {",", "!", "-", "*", "•", ")", "(", "¡", "¿"}:
            return 1
        if token.kind is Kind.NUMBER and place + 1 < len(said) and texts[place + 1] in {")", "."}:
            return 2
        if token.kind is Kind.MARK and not token.text.isascii() and not token.text.isalnum():
            return 1
        if near:
            return 0
        times = read_times(said[place : place + 12])
        if 0 in times.places:
            size = 1
            while size in times.places:
                size += 1
            return size
        return self._goal_lead(said, texts, place)

    def _goal_lead(self, said: Sequence[Token], texts: Sequence[str], place: int) -> int:
        """Return the size of a goal before the verb: en receta.md, cambia la sal."""
        size = self._size("goal", texts, place)
        if not size:
            return 0
        at = place + size
        while at < len(said) and self._words.holds("article", texts[at]) and said[at].kind is Kind.WORD:
            at += 1
        for step in (0, 1):
            if at + step < len(said) and said[at + step].kind is Kind.LITERAL:
                return at + step + 1 - place
        return self._place_lead(said, texts, place, at)

    def _place_lead(self, said: Sequence[Token], texts: Sequence[str], place: int, at: int) -> int:
        """Return the size of a place before the verb: on number 88 of portal, comment."""
        if texts[place] not in _WHERE or self._operator_at(texts, place) is not None:
            return 0
        whole = False
        for end in range(at, min(at + _LEAD, len(said))):
            one = said[end]
            small = self._words.holds("goal", one.text) or self._words.holds("article", one.text)
            if one.text == "," or (end > at and not small and one.kind is Kind.WORD and self._verbs_of(one.text)):
                return end - place if end > at and whole else 0
            named = one.kind in {Kind.WORD, Kind.LITERAL, Kind.NUMBER, Kind.QUOTE}
            if not named or self._operator_at(texts, end) is not None or texts[end] in _RELATIVE:
                return 0
            numbered = one.kind is Kind.NUMBER and texts[end + 1 : end + 2] in (["de"], ["of"], ["in"], ["en"])
            whole = whole or one.kind in {Kind.LITERAL, Kind.QUOTE} or numbered
        return 0

    def _size(self, name: str, texts: Sequence[str], place: int) -> int:
        return self._words.match(name, texts, place)

    # ---- one clause ----------------------------------------------------------

    def _clause(self, clause: list[Token], *, question: bool, joined: bool) -> None:
        verb = self._verb_at(clause, 0)
        fronted = None
        if verb is None:
            verb = fronted = self._fronted(clause)
        if verb is None and self._request.asks:
            verb = self._wished(clause)
        if verb is None and not question and not self._request.asks:
            verb = self._thing_at(clause)
        texts = [one.text for one in clause]
        corrects = bool(self._request.asks) and verb is not None and verb < self._size("correction", texts, 0)
        if verb is None or corrects or self._is_told(clause, verb):
            self._state(clause, question=question, joined=joined)
            return
        polite = any(self._size("polite", texts, at) and texts[at : at + 2] not in _MAY_I for at in range(verb)) or any(
            one.text in {"me", "le", "les", "nos", "lo", "la"} for one in clause[:verb]
        )
        if "te" in texts[:verb] and not polite:
            self._state(clause, question=question, joined=joined)
            return
        again = (
            self._verb_at(clause, verb + 2, near=True)
            if texts[verb + 1 : verb + 2] in (["and"], ["y"], ["&"])
            else None
        )
        ask = self._ask(clause, verb if again is None else again)
        if fronted is not None:
            for at in range(fronted):
                if ask.labels[at] is Label.ARTICLE and not self._words.holds("article", texts[at]):
                    ask.labels[at] = Label.OBJECT
        if question and not polite and not ask.verbatim:
            ask.fault = ask.fault or Fault("question", "?")
        left = ask.fault is not None and ask.fault.kind == "negation" and self._left_open(texts)
        if ask.fault is not None and (ask.fault.kind in _HARD or left):
            self._request.fault = self._request.fault or ask.fault
        ask.previous = self._request.asks[-1] if ask.refers and self._request.asks else None
        self._request.asks.append(ask)

    def _fronted(self, clause: Sequence[Token]) -> int | None:
        """Return the verb of a request whose object precedes it: el segundo sácalo."""
        texts = [one.text for one in clause]
        for at, one in enumerate(clause[:_FRONT]):
            verbs = self._verbs_of(one.text) if one.kind is Kind.WORD else ()
            if any(verb.joined in {"lo", "la", "los", "las"} for verb in verbs) and at:
                return None if self._operator(clause[:at], 0) else at
            if texts[at] in {"que", "q", "quien", "donde"}:
                return None
        return None

    def _wished(self, clause: Sequence[Token]) -> int | None:
        """Return the pronoun of a wish that only names a goal: I'd like it in notes.md, lo quiero en notas.md."""
        texts = [one.text for one in clause]
        size = self._size("polite", texts, 0)
        at = size or 0
        if texts[at : at + 2] in (["lo", "quiero"], ["la", "quiero"], ["los", "quiero"], ["las", "quiero"]):
            return at
        return at if size and texts[at : at + 1] in (["it"], ["them"]) else None

    def _thing_at(self, clause: Sequence[Token]) -> int | None:
        """Return where a request names only the thing to be made: script de python."""
        for at, one in enumerate(clause[:4]):
            if one.text in ARTIFACTS:
                return at
            if one.kind is not Kind.WORD or self._words.verb(one.text):
                return None
        return None

    def _is_told(self, clause: Sequence[Token], verb: int) -> bool:
        """Return True if a line names its speaker: Bob (manager): denied."""
        colon = next((at for at, one in enumerate(clause[:verb]) if one.text == ":"), 0)
        texts = [one.text for one in clause]
        at = 0
        while at < colon and (size := max(self._size(name, texts, at) for name in ("please", "greet", "article"))):
            at += size
        return at < colon and verb > _SPEAKER_WORDS

    def _state(self, clause: list[Token], *, question: bool, joined: bool) -> None:
        """Parse a clause without a request: small talk, a reason, a statement.

        ``joined`` says that more of its sentence follows, to which the clause then applies.
        """
        texts = [one.text for one in clause]
        fault = None
        place, open_words = 0, 0
        while place < len(clause):
            size = max(self._size(name, texts, place) for name in ("please", "greet"))
            if size or clause[place].kind in {Kind.MARK, Kind.BREAK} or clause[place].kind is Kind.QUOTE:
                place += max(size, 1)
                continue
            open_words += 1
            place += 1
        if not open_words:
            return
        if self._request.asks and not question and self._tells_more(texts) and self._request.asks[-1].fault is None:
            self._extend(self._request.asks[-1], clause)
            return
        if self._request.asks and not question and self._is_meant(self._request.asks[-1], clause):
            self._request.asks[-1].tokens.extend(clause)
            self._request.asks[-1].labels.extend(Label.CONTENT for _ in clause)
            return
        fault = self._around(clause, texts, joined=joined)
        if question and not self._request.asks and fault is None:
            self._before = [*self._before, *clause]
            return
        if question:
            fault = fault or Fault("question", "?")
        if fault is None and self._request.asks and self._is_signature(clause):
            return
        if fault is None and self._request.asks and not self._is_reason(texts):
            fault = Fault("trailing", " ".join(one.raw for one in clause[:6]))
        if fault is not None:
            self._request.fault = self._request.fault or fault
            for ask in self._request.asks:
                ask.fault = ask.fault or fault
            return
        self._request.statements.append(clause)
        self._before = [*self._before, *clause]

    def _around(self, clause: Sequence[Token], texts: Sequence[str], *, joined: bool) -> Fault | None:
        """Return how a clause without a request qualifies the requests near it: in the worst case, if it rains."""
        if self._request.asks:
            return self._operator(clause, 0)
        fault = self._operator(clause, 0, only=_HARD | {"report", "condition"} if joined else _LEADING)
        return Fault("condition", texts[0]) if fault is None and joined and texts[0] in _WHERE else fault

    def _is_meant(self, ask: Ask, clause: Sequence[Token]) -> bool:
        """Return True if a clause after an ask is what it calls "these": only names and things."""
        named = not _THIS.isdisjoint(one.text for one in ask.tokens) and not any(ask.of(Label.CONTENT, Label.QUOTE))
        return (
            named
            and any(one.text == "," for one in clause)
            and ask.fault is None
            and self._operator(clause, 0) is None
            and not any(one.kind is Kind.WORD and self._verbs_of(one.text) for one in clause)
        )

    def _is_signature(self, clause: Sequence[Token]) -> bool:
        """Return True if a line after a request is only a name, an address or a number."""
        return all(
            one.kind in {Kind.LITERAL, Kind.NUMBER, Kind.MARK, Kind.BREAK}
            or (
                one.raw[:1].isupper() and not self._words.verb(one.text) and not self._words.holds("negation", one.text)
            )
            for one in clause
        ) and any(one.kind is Kind.BREAK for one in self._sentence_now[:1])

    def _tells_more(self, texts: Sequence[str]) -> bool:
        """Return True if a sentence specifies the request before it: its title should be …, it is 20 euros."""
        if texts[0] in _PARTS and texts[1:2] in (["is"], ["are"], ["es"], ["son"], [":"]):
            return True
        return texts[0] in _TELLING_MORE or (
            texts[0] in {"the", "its", "el", "la", "su", "her", "his"} and not _PARTS.isdisjoint(texts[1:5])
        )

    def _extend(self, ask: Ask, clause: list[Token]) -> None:
        """Add to a request what a sentence after it specifies: it is 20 euros."""
        labels = [Label.FILLER, *[Label.OBJECT] * (len(clause) - 1)]
        ask.fault = self._operator([one for one in clause if one.text not in {"should", "deberia"}], 1)
        size, more = len(ask.tokens), read_times(clause)
        ask.times = Times(ask.times.features | more.features, ask.times.places | {size + at for at in more.places})
        ask.tokens.extend(clause)
        ask.labels.extend(
            Label.MARK if one.kind is Kind.MARK else label for one, label in zip(clause, labels, strict=True)
        )

    def _is_reason(self, texts: Sequence[str]) -> bool:
        return bool(texts) and bool(self._size("reason", texts, 0))

    def _reason_at(self, clause: Sequence[Token], texts: Sequence[str], place: int) -> int:
        """Return the size of the opening of a reason after a pause: because; and ya terminé, but not ya pagaré."""
        told = clause[place + 1].raw if texts[place] == "ya" and place + 1 < len(clause) else ""
        return self._size("reason", texts, place) or int(told.endswith(_TOLD_ENDINGS) and not told.endswith("ré"))

    def _operator(self, clause: Sequence[Token], place: int, *, only: frozenset[str] | None = None) -> Fault | None:
        """Return the first operator of a clause from a place on, of the given classes if any."""
        texts = [one.text for one in clause]
        hard = only is not None
        if (
            hard
            and texts
            and not self._size("polite", texts, 0)
            and (texts[0] in {"no", "nope", "nah", "nel", "nein", "non", "not", "never", "nunca", "don't"})
        ):
            return Fault("negation", texts[0])
        if hard and place == 0 and (left := self._left_open(texts)):
            return Fault("negation", left)
        if hard and place == 0 and ":" in texts[1 : _SPEAKER_WORDS + 2] and self._is_speaker(clause, texts.index(":")):
            return Fault("report", ":")
        at = place
        while at < len(clause):
            found = None if clause[at].kind is Kind.QUOTE else self._operator_at(texts, at, only)
            if found is not None:
                return found
            at += max(self._size("polite", texts, at), 1)  # make sure to: no single word of it is an operator
        return None

    def _left_open(self, texts: Sequence[str]) -> str:
        """Return a negation with nothing to negate in its clause, so that it applies to what follows."""
        for at in range(len(texts)):
            size = self._size("negation", texts, at) or 2 * (list(texts[at : at + 2]) == ["do", "not"])
            behind = takewhile(lambda one: one not in _PAUSES, texts[at + size :])
            if size and all(one in _EMPTY for one in behind):
                return " ".join(texts[at : at + size])
        return ""

    def _is_speaker(self, clause: Sequence[Token], colon: int) -> bool:
        """Return True if the text before a colon is a name: Ann: please refund it."""
        return all(
            one.kind is Kind.WORD and one.raw[:1].isupper() and not self._size("please", [one.text], 0)
            for one in clause[:colon]
            if one.kind is not Kind.MARK
        ) and colon + 1 < len(clause)

    def _operator_at(self, texts: Sequence[str], place: int, only: frozenset[str] | None = None) -> Fault | None:
        best, kind = 0, ""
        for name in OPERATORS:
            if only is None or name in only:
                inverted = texts[place] in INVERTED and place > 0 and texts[place - 1] not in _PAUSES
                size = 0 if inverted and name == "condition" else self._size(name, texts, place)
                if size > best:
                    best, kind = size, name
        if not best or max(self._size(name, texts, place) for name in ("please", "greet", "polite")) >= best + (
            best == 1
        ):
            return None
        return Fault(kind, " ".join(texts[place : place + best]))

    def _ask(self, clause: list[Token], verb: int) -> Ask:
        texts = [one.text for one in clause]
        compared = comparison(clause)
        times = read_times(clause[: compared[1]] if compared is not None else clause)
        form = clause[verb].text
        meaning = (form not in _STANDING and self._verbs_of(form)) or (
            Verb(frozenset({"put"}) if form in _STANDING else _OF_THINGS, "it" if form in _STANDING else "", "en"),
        )
        chosen = (
            meaning[0]
            if len(meaning) == 1
            else Verb(
                frozenset().union(*(one.meanings for one in meaning)),
                next((one.joined for one in meaning if one.joined), ""),
                meaning[0].language,
            )
        )
        recalls = next((at for at in range(verb) if at + self._size("recall", texts, at) == verb + 1), None)
        if recalls is not None:
            chosen = Verb(frozenset({"remind"}), "", chosen.language)
        looks = self._size("look", texts, verb)
        if looks or self._is_for_me(texts, verb, chosen):
            chosen = Verb(frozenset({"read"}), chosen.joined, chosen.language)
        labels = [Label.OBJECT] * len(clause)
        ask = Ask(chosen, form, clause, labels, times, self._words, before=tuple(self._before), topic=self._topic)
        self._label_lead(clause, texts, labels, verb)
        labels[verb] = Label.VERB
        if recalls is not None:
            labels[recalls:verb] = [Label.MARK] * (verb - recalls)
        labels[verb + 1 : verb + looks] = [Label.FILLER] * max(looks - 1, 0)
        ask.fault = (
            self._operator(clause[: verb if recalls is None else recalls], 0)
            or (None if looks else self._phrase_at(texts, verb))
            or self._label_body(ask, texts, verb + max(looks, 1))
        )
        if compared is not None:
            labels[compared[1] :] = [Label.SOURCE] * (len(labels) - compared[1])
        if not ask.verb.meanings.isdisjoint(_TURNING):
            _mark_source(ask)
        said = {
            one.text
            for at, one in enumerate(clause)
            if labels[at] is Label.CONTENT and at not in times.places and one.kind is not Kind.MARK
        }
        ask.there = any(
            one in _SAME and other in _FILES and labels[at] is not Label.CONTENT
            for at, (one, other) in enumerate(itertools.pairwise(texts))
        )
        ask.refers = (
            (bool(said) and said <= _STANDING)
            or bool(chosen.joined and chosen.joined not in {"me", "te", "le", "les", "nos"})
            or any(self._stands_for(ask, at) for at in (*range(verb), *range(verb + 1, min(verb + 3, len(clause)))))
        )
        return ask

    def _stands_for(self, ask: Ask, place: int) -> bool:
        """Return True if a word is a pronoun for something said before: put it in a.txt, but not put that file."""
        token, after = ask.tokens[place], place + 1
        if token.text not in _STANDING or ask.labels[place] in {Label.CONTENT, Label.FILLER, Label.SOURCE}:
            return False
        return (
            after >= len(ask.tokens) or ask.labels[after] is not Label.OBJECT or ask.tokens[after].kind is not Kind.WORD
        )

    def _is_for_me(self, texts: Sequence[str], verb: int, meant: Verb) -> bool:
        """Return True if the result is only reported to the requester: tell me, dime, show us, let me know."""
        if "read" not in meant.meanings or texts[verb + 2 : verb + 3] in (["to"], ["que"], ["q"], ["cuando"]):
            return False
        after, before = texts[verb + 1 : verb + 2], texts[:verb]
        mine = (
            (after in (["me"], ["us"]) and value_of(" ".join(texts[verb + 2 : verb + 3])) is None)
            or meant.joined.startswith(("me", "nos"))
            or (meant.language == "es" and bool({"me", "nos"} & set(before)))
        )
        return mine

    def _phrase_at(self, texts: Sequence[str], verb: int) -> Fault | None:
        """Return an operator of several words that begins with the verb: keep me posted, but not cancel that order."""
        found = self._operator_at(texts, verb)
        if found is None or " " not in found.words:
            return None
        behind = texts[verb + len(found.words.split()) :]
        names = any(one.isalpha() and not any(self._size(kind, [one], 0) for kind in _SMALL) for one in behind[:1])
        return None if found.kind == "retraction" and names else found

    def _label_lead(self, clause: Sequence[Token], texts: Sequence[str], labels: list[Label], verb: int) -> None:
        times = read_times(clause[:verb]).places
        place = 0
        while place < verb:
            size = max(self._size(name, texts, place) for name in ("please", "polite", "greet"))
            label = Label.FILLER
            if place in times:
                size, label = 1, Label.TIME
            elif not size and clause[place].kind is Kind.WORD and self._size("goal", texts, place):
                size, label = self._size("goal", texts, place), Label.GOAL
            elif not size:
                size = 1
                small = texts[place] in _PRONOUNS or self._words.holds("article", texts[place])
                word = Label.ARTICLE if small or Label.GOAL not in labels[:place] else Label.OBJECT
                literal = clause[place].kind in {Kind.LITERAL, Kind.NUMBER}
                label = Label.OBJECT if literal else word if clause[place].kind is Kind.WORD else Label.MARK
            for at in range(place, min(place + size, verb)):
                labels[at] = label
            place += size

    def _label_body(self, ask: Ask, texts: Sequence[str], place: int) -> Fault | None:  # noqa: C901, PLR0915
        """Label the tokens after the verb, and return the operator that cancels the request, if there is one."""
        clause, labels = ask.tokens, ask.labels
        saying = not ask.verb.meanings.isdisjoint(COMMUNICATING)
        making = saying or not ask.verb.meanings.isdisjoint(COMPOSING)
        region, because = Label.OBJECT, False
        began = place
        while place < len(clause):
            token = clause[place]
            if token.kind is Kind.QUOTE:
                labels[place] = Label.QUOTE
                place += 1
                continue
            opened = region is Label.CONTENT and labels[place - 1] is not Label.CONTENT
            if token.text == ":" and (region is not Label.CONTENT or opened) and place > began - 1:
                region, labels[place], ask.verbatim = Label.CONTENT, Label.MARK, True
                place += 1
                continue
            if token.kind is Kind.MARK:
                labels[place] = Label.CONTENT if region is Label.CONTENT else Label.MARK
                if token.text in {"→", "->", "=>"}:
                    region, labels[place] = Label.OBJECT, Label.GOAL
                if region is Label.SOURCE and token.text in {",", ")"}:
                    region = Label.OBJECT
                place += 1
                continue
            if region is Label.CONTENT:
                hard = None if ask.verbatim else self._hard_at(clause, texts, place)
                if hard is not None:
                    return hard
                goal = (
                    0 if ask.verbatim or self._has_goal(ask, began, place) else self._closing_goal(clause, texts, place)
                )
                if goal:
                    for at in range(place, place + goal - 1):
                        labels[at] = Label.GOAL
                    labels[place + goal - 1] = Label.OBJECT
                    place, region = place + goal, Label.OBJECT
                    continue
                labels[place] = Label.CONTENT
                place += 1
                continue
            if place in ask.times.places and region is not Label.REASON:
                labels[place] = Label.TIME
                place += 1
                continue
            if saying and place > began and self._tells_of(ask, texts, place):
                region = Label.CONTENT
                continue
            operator = self._operator_at(texts, place)
            opens = self._opens(texts, place, saying=saying, making=making)
            if opens and texts[place] in _IF and self._is_condition(ask, began, place):
                opens = 0
            if opens and (
                operator is None
                or (opens >= len(operator.words.split()) and operator.kind in {"condition", "past", "future"})
            ):
                for at in range(place, place + opens):
                    labels[at] = Label.FILLER
                region = Label.CONTENT
                place += opens
                continue
            pause = place > began and self._is_pause(clause, place)
            reason = self._reason_at(clause, texts, place) if pause else 0
            if operator is not None and reason > len(operator.words.split()):
                operator = None  # wrong size, can't reproduce: the longer phrase decides
            if operator is not None and not (
                region is Label.REASON and (because or operator.kind != "negation") and operator.kind in _EXCUSED
            ):
                return operator
            if region is Label.REASON:
                if texts[place] in _UNSETTLED:
                    return Fault("hypothetical", texts[place])
                labels[place] = Label.REASON
                place += 1
                continue
            if (
                pause
                and texts[place] in _TELLING_MORE
                and clause[place + 1 : place + 2]
                and texts[place + 1][:1].isdigit()
            ):
                labels[place] = Label.FILLER
                place += 1
                continue
            if reason or texts[place] in _BECAUSE:
                region, because = Label.REASON, texts[place] in _BECAUSE
                if texts[place] in _UNSETTLED:
                    return Fault("hypothetical", texts[place])
                size = max(reason, 1)
                labels[place : place + size] = [Label.REASON] * size
                place += size
                continue
            if texts[place] in {"que", "q"} and place > began and texts[place : place + 2] != ["que", "se"]:
                told = texts[place + 1 : place + 2] == ["ya"] or self._is_pause(clause, place)
                region = Label.REASON if told else Label.SOURCE
                labels[place] = region
                place += 1
                continue
            size, label = self._plain(texts, place, region)
            if label is Label.SOURCE:
                region = Label.SOURCE
            elif label is Label.GOAL:
                region = Label.OBJECT
            for at in range(place, place + size):
                labels[at] = Label.SOURCE if region is Label.SOURCE and label is not Label.FILLER else label
            place += size
        return None

    def _tells_of(self, ask: Ask, texts: Sequence[str], place: int) -> bool:
        """Return True if a message begins with its subject: tell Ana I'm late, let Cal know he won."""
        behind = (
            texts[place - 1] == "know"
            or ask.tokens[place - 1].kind is Kind.LITERAL
            or ask.tokens[place - 1].raw[:1].isupper()
        )
        return texts[place] in _SUBJECTS and behind and place + 1 < len(texts) and ask.verb.language == "en"

    def _has_goal(self, ask: Ask, began: int, place: int) -> bool:
        """Return True if a goal was named before the content: then everything in the content is content."""
        return any(
            ask.labels[at] is Label.GOAL and ask.tokens[at].text not in {"de", "of", "del", "con", "with"}
            for at in range(began, place)
        ) or any(one.kind is Kind.LITERAL for one in ask.tokens[:place])

    def _closing_goal(self, clause: Sequence[Token], texts: Sequence[str], place: int) -> int:
        """Return the size of a goal at the end of the content: … that I ran 5 km in runs.csv."""
        size = self._size("goal", texts, place)
        if not size or texts[place] in {"de", "of", "del", "con", "with", "que", "that", "by"}:
            return 0
        at = place + size
        while at < len(clause) and clause[at].kind is Kind.WORD and self._words.holds("article", texts[at]):
            at += 1
        if at >= len(clause) or clause[at].kind is not Kind.LITERAL:
            return 0
        rest = at + 1
        while rest < len(clause) and (filler := self._size("please", texts, rest)):
            rest += filler
        ends = rest >= len(clause) or (clause[rest].kind is Kind.MARK and clause[rest].text in {",", ")", "("})
        return at + 1 - place if ends else 0

    def _is_pause(self, clause: Sequence[Token], place: int) -> bool:
        return clause[place - 1].kind is Kind.MARK

    def _hard_at(self, clause: Sequence[Token], texts: Sequence[str], place: int) -> Fault | None:
        """Return an operator that applies within content: irony anywhere, and a retraction that begins a part of it."""
        found = self._operator_at(texts, place, frozenset({"irony"}))
        if found is None and clause[place - 1].kind is Kind.MARK:
            found = self._operator_at(texts, place, frozenset({"retraction", "negation", "exclusion"}))
        return found

    def _opens(self, texts: Sequence[str], place: int, *, saying: bool, making: bool) -> int:
        size = self._size("content", texts, place)
        if size > 1:
            return size
        if not size:
            if saying and texts[place] == "to" and place + 1 < len(texts) and self._verbs_of(texts[place + 1]):
                return 1
            if (
                saying
                and texts[place] in {"de", "a", "para"}
                and place + 1 < len(texts)
                and texts[place + 1].endswith(
                    ("ar", "er", "ir", "arme", "erme", "irme", "arle", "arlo", "arla", "erlo", "erla")
                )
            ):
                return 1
            return 0
        word = texts[place]
        if word in _OPENERS or word in _RELATIVE:
            return size if saying or (making and word not in {"que", "q", "that", "which", "who"}) else 0
        return size if making else 0

    def _is_condition(self, ask: Ask, began: int, place: int) -> bool:
        """Return True if "if" attaches a condition to the text before: write hello to a.txt if it rains."""
        if ask.verb.meanings.isdisjoint(COMPOSING):
            return False
        before = list(zip(ask.tokens[began:place], ask.labels[began:place], strict=True))
        said = any(
            label in {Label.QUOTE, Label.OBJECT, Label.FILLER} and one.kind is not Kind.LITERAL for one, label in before
        )
        return said and (before[-1][0].kind is Kind.MARK or any(one.kind is Kind.LITERAL for one, _ in before))

    def _plain(self, texts: Sequence[str], place: int, region: Label) -> tuple[int, Label]:
        best, label = 1, Label.OBJECT
        for name, kind in (
            ("source", Label.SOURCE),
            ("goal", Label.GOAL),
            ("please", Label.FILLER),
            ("article", Label.ARTICLE),
        ):
            size = self._size(name, texts, place)
            if size > best or (size == best and label is Label.OBJECT):
                best, label = size, kind
        if region is Label.SOURCE and label in {Label.ARTICLE, Label.OBJECT}:
            label = Label.SOURCE
        return best, label


def comparison(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the places of a comparison's two words, if its thing is named: the same guests as the kick-off on Monday.

    What follows is about that thing: its day is not the request's.
    """
    for at, one in enumerate(tokens):
        joint = next((behind for behind in range(at + 2, min(at + 5, len(tokens))) if tokens[behind].text in _AS), None)
        if one.text in _ALIKE and joint is not None and joint + 1 < len(tokens):
            return at, joint
    return None


def _mark_source(ask: Ask) -> None:
    """Label the first words of a conversion as a source, if a goal follows: convert a.xml to b.json."""
    literals = [
        at for at, token in enumerate(ask.tokens) if token.kind is Kind.LITERAL and ask.labels[at] is Label.OBJECT
    ]
    goals = [at for at in literals if any(ask.labels[back] is Label.GOAL for back in range(max(at - 3, 0), at))]
    held = [at for at in goals[:-1] if _is_held(ask, at)]
    if goals:
        for at in literals:
            if at not in goals or at in held:
                ask.labels[at] = Label.SOURCE


def _is_held(ask: Ask, place: int) -> bool:
    """Return True if a file is where something is that is turned: copia lo que hay en a.txt dentro de b.txt."""
    verb = ask.labels.index(Label.VERB)
    return any(one.text in _HELD for one in ask.tokens[verb + 1 : place] if one.kind is Kind.WORD)


def _sentences(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Split tokens into sentences; a line break begins one."""
    sentence: list[Token] = []
    for token in tokens:
        if token.kind is Kind.BREAK and sentence:
            yield sentence
            sentence = []
        sentence.append(token)
        if token.kind is Kind.MARK and token.text in _SENTENCE_ENDS - {"¡", "¿"}:
            yield sentence
            sentence = []
    if sentence:
        yield sentence
