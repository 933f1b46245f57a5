"""Values next to a word that says they are secret: assignments, sentences, URLs, headers, commands.

All words are found in one scan; a bounded number of characters after each is examined, and text already taken as a
value is not examined again. So the work is linear in the length of any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from phylactery_chassis.inspection import values
from phylactery_chassis.inspection.candidates import Candidate, Sight
from phylactery_chassis.inspection.codes import OTHER_THINGS, names_code
from phylactery_chassis.inspection.expressions import Match, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind
from phylactery_chassis.inspection.text import MASKED, readings
from phylactery_chassis.inspection.values import Link, Value

_LOGIN_WORDS = (
    r"p[a4]ss[ _-]?w[o0]rd|passwd|pass[ _-]?code|pwd|contrasen(?:y?a|as)|senhas?|"
    r"mot[ _-]de[ _-]passe|\bmdp\b|passwort|kennwort|parola[ _-]?chiave|\brequirepass\b|\bpsk\b"
    r"|pre[ _-]?shared[ _-]?(?:key|secret)|\bwpa[23]?[ _-](?:key|psk)|clave (?:pre)?compartida"
)
_PHRASE_WORDS = (
    r"pass[ _-]?phrase|(?:seed|recovery|mnemonic)[ _-]phrase|mnemonic|frase (?:de paso|semilla|de recuperacion|secreta)"
)
_WEAK_WORDS = r"(?:\b|_)claves?\b|(?:\b|_)pass\b|(?:\b|_)pw\b|\bcontra\b|\b(?:the|wifi|wi-fi|network) key\b"
_KEY_WORDS = (
    r"api[ _-]?key|access[ _-]?key|secret[ _-]?key|auth[ _-]?key|account[ _-]?key|private[ _-]?key|signing[ _-]?key|"
    r"encryption[ _-]?key|client[ _-]?secret|app[ _-]?secret|shared[ _-]?secret|secreto|secret|credential(?:s|es)?|"
    r"credencial(?:es)?|auth[ _-]?token|access[ _-]?token|refresh[ _-]?token|bearer[ _-]?token|token|clave[ _-]?api|"
    r"clave[ _-]secreta|llave"
)
_WORD = expression(rf"(?i)(?:({_PHRASE_WORDS})|({_KEY_WORDS})|({_LOGIN_WORDS})|({_WEAK_WORDS}))")
"""Groups: 1 passphrase words, 2 key words, 3 password words, 4 words that also have other senses."""
_PHRASE, _KEY, _LOGIN, _WEAK = 1, 2, 3, 4

_REACH = 120
"""How many characters after a word are searched for its value."""
_MAX_WORDS_BETWEEN, _MAX_LINKS = 10, 4
_MORE_NAME = expression(r"""^([_-][\w-]{0,40})?(?:[\\"'\])]{0,3})""")
_ASSIGN = expression(r"^(?: (?:value|content) ?|[ \t]{0,4})(=>|:=|={1,3}|:|<-|->|>|¤|\|)(?:[ \t]*\n\s{0,8}|[ \t]{0,4})")
_LINKS = expression(
    r"(?i)(?:(?:^|[ )\"'])(is|are|was|were|will be|remains|es|son|era|sera|seria|sigue siendo|ist|est|e)|(^'s)"
    r"|(?:^|[ ])(to|a|por)|[:=]|^,|(?:^ )-)"
    r"(?: (?:el|la|the|now|ahora|still|just|actually|currently))?(?: ?:)? (?:: ?)?"
)
"""Groups: 1 and 2 a verb, 3 a word of change; neither: a colon or a dash further on."""
_SENTENCE_END = expression(rf"[.!?;] |[\n{MASKED}]|[.!?]$")
_OF_WHAT = expression(r"(?i)^ ?(?:$|\(|(?:of|for|to|on|in|at|you|that|del?|para|en|nueva|nuevo|wifi|wi-fi)\b)")

_OF_SOMETHING = expression(r"(?i)^ (?:del?|of|for|to|para) (?:(?:el|la|the|my|mi) )?\w+ ")

_OF_OTHER = expression(
    rf"(?i)^((?: [a-z]{{2,12}}){{0,2}}?)(?: (?:del?|of|for|to|para) (?:(?:el|la|los|las|the|my|mi|your|tu|su"
    rf"|este|esta|this)"
    rf" )?)?(?: ?)(?:{OTHER_THINGS})\b"
)
"""What a word that also has other senses is about, where it is no password: the key of a product.

Group 1: words that describe it, as in "clave única del trámite".
"""
_OF_SOMETHING_ELSE = frozenset(b"a al de del el en for la las los mi my of para the to tu your".split())
"""Words of a description that make it another thing: "clave del candado del paquete"."""
_ABOUT_OTHER = expression(rf"(?i)[_-](?:{OTHER_THINGS})$")
_SECURED = expression(r"(?i)\b(?:banco|bank|tarjeta|card|cuenta|account|cajero|atm|wi-?fi|certificado|firma|login)\b")
_CHOSEN = expression(r"[a-z]{4}.*[0-9]|[0-9].*[a-z]{4}|[a-z].*[A-Z]|[!@$%&*?+=^]")
"""What no key of a thing looks like, but a password: a word with digits, capitals within, signs."""

_NAME_PARTS = re.compile(r"[.:\s]+")

_ABOUT_IT = expression(
    r"(?i)[_-](?:ur[il]|endpoint|path|file|filename|name|type|kind|ttl|expir\w*|seconds|minutes|at|in"
    r"|count|limit|length|size"
    r"|policy|header|field|label|hint|prompt|regex|pattern|version|date|manager"
    r"|less|protected|timeout|attempts|age|history|score|strength|rules?|required|enabled|min|max)$"
)
"""Name suffixes that describe a property of the secret: its location, its lifetime."""
_OPTION_BEFORE = expression(r"(?:^|[ \n\"'=])--?[\w-]*$")
_CONNECTION = expression(
    r"(?i)\b(?:server|host|hostname|data source|addr|address|database|initial catalog|user id|uid|user|username|dbname)"
    r" {0,2}= {0,2}[^;=\n]+[; ]"
)
_CONNECTION_REACH = 200
_PAIR = expression(r"^[\w.@-]{2,32}[/:]([^\s/:]{4,})$")
"""A user name and password as credentials are often written."""

_URL = expression(rf"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:\"'<>{MASKED}]*:([^\s/?@\"'<>{MASKED}]+)@[\w\[]")
_AUTHORIZATION = expression(
    r"(?i)authorization[\\\"' ]{0,4}[:=][\\\"' ]{0,4}(?:bearer|basic|token|apikey|digest)? {0,2}"
    r"([A-Za-z0-9+/=._~-]{8,})"
)
_BEARER = expression(r"(?i)\bbearer {1,2}([A-Za-z0-9+/=._~-]{20,})")
_COOKIE = expression(
    r"(?i)\bcookie: ?(?:[\w.-]+=[^;\s]*; ?){0,20}?(?:\w*session\w*|\w*sid|\w*auth\w*|\w*token|jwt)=([^;\s\"']{12,})"
)
_COMMANDS = (
    (b"-p", expression(r"\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|]{0,120}? -p'?([^\s']{4,})")),
    (b"-p", expression(r"\bsshpass -p ?[\"']?([^\s\"']{3,})")),
    (b"/user:", expression(r"\bnet use\b[^\n]{0,120}? /user:\S+ ([^\s\"'/]{4,})")),
    (b"curl", expression(r"\bcurl\b[^\n|]{0,200}? (?:-u|--user)[ =]?[\"']?[\w.@-]+:([^\s\"']{4,})")),
    (b"dentified", expression(r"(?i)\bidentified (?:with \w+ )?by '([^'\n]{3,})'")),
    (b"DENTIFIED", expression(r"(?i)\bidentified (?:with \w+ )?by '([^'\n]{3,})'")),
)
_SAID_BEFORE = expression(
    rf"(?i)([^\s{MASKED}]{{5,64}}) (?:(?:is|was|will be|es|era|sera) "
    r"(?:my|the|our|your|his|her|their|mi|la|el|tu|su|nuestra)"
    rf" (?:[\w-]+ ){{0,3}}?|(?:as|como|de) (?:(?:my|the|our|a|mi|la|tu|su) )?)(?:{_LOGIN_WORDS}|claves?)\b"
)
_AROUND = b"\xa4\"'()[],:;"
_REVERSED = expression(r"(?i) (?:is|was|will be|es|era|sera|as|como|de) ")


def assignments(sight: Sight) -> Iterator[Candidate]:
    """Find all values that a word, a URL, a header or a command marks as secret."""
    data = sight.data
    if b"://" in data:
        for found in _URL.finditer(data):
            sure = _judged_url(data[slice(*found.span(1))])
            if sure is not None:
                yield Candidate(*found.span(1), FindingKind.URL_PASSWORD, sure, "url-password")
    lower = data.lower()
    if b"authorization" in lower or b"bearer" in lower or b"cookie" in lower:
        yield from _headers(data)
    for word, pattern in _COMMANDS:
        if word in data:
            for found in pattern.finditer(data):
                if not values.drawn(data[slice(*found.span(1))]):
                    yield Candidate(*found.span(1), FindingKind.PASSWORD, Confidence.HIGH, "command")
    yield from _named(data)


def names_secret(name: str) -> bool:
    """Return True if a name says that its value is secret."""
    return any(_WORD.search(reading.data) is not None or names_code(reading.data) for reading in readings(name))


def as_text(value: str | float) -> str:
    """Return a text or number as a person would write it: 4821.0 is the PIN 4821."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def named(name: str, value: str | float) -> str:
    """Return the text to inspect for a value: with its name if the name marks it as secret.

    The name is added only then, so that it cannot make a card number look like something else.
    """
    text = as_text(value)
    name = _NAME_PARTS.sub("_", name)
    return f'{name}="{text}"' if name and names_secret(name) else text


def _judged_url(value: bytes) -> Confidence | None:
    if values.drawn(value):
        return None if values.variable(value) else Confidence.LOW
    return Confidence.HIGH


def _headers(data: bytes) -> Iterator[Candidate]:
    for pattern in (_AUTHORIZATION, _BEARER, _COOKIE):
        for found in pattern.finditer(data):
            value = data[slice(*found.span(1))]
            if not values.drawn(value):
                yield Candidate(
                    *found.span(1), FindingKind.AUTHORIZATION, values.sure_of(value), "authorization-header"
                )


def _named(data: bytes) -> Iterator[Candidate]:
    taken = 0
    words = list(_WORD.finditer(data))
    for word, following in zip_longest(words, words[1:]):
        if word.start() < taken:
            continue
        for found in _of_word(data, word, len(data) if following is None else following.start()):
            yield found
            if found.confidence > Confidence.LOW:
                taken = found.end
                break
    if _REVERSED.search(data) is not None:
        for said in _SAID_BEFORE.finditer(data):
            written = said.group(1) or b""
            start, end = said.end(1) - len(written.lstrip(_AROUND)), said.start(1) + len(written.rstrip(_AROUND))
            if start >= end:
                continue
            value = Value(start, end, quoted=False)
            sure = values.judged_password(data, value, Link.APART, weak=False)
            if sure is not None and not written.isdigit():
                yield Candidate(value.start, value.end, FindingKind.PASSWORD, sure, "password")


def _of_word(data: bytes, word: Match, until: int) -> Iterator[Candidate]:
    """Find what one word marks as secret, the likeliest position first; from ``until`` on, another word applies."""
    name = _MORE_NAME.match(data[word.end() : word.end() + _REACH])
    more, at = b"", word.end()
    if name is not None and data[at : at + 3] != b"'s ":
        more, at = name.group(1) or b"", at + name.end()
    if _ABOUT_IT.search(more) is not None:
        return
    of_other = word.start(_WEAK) >= 0 and (_ABOUT_OTHER.search(more) is not None or _is_of_other(data, at))
    for place, link in _places(data, word, at, max(at, until)):
        found = _judged(data, word, place, link)
        if found is not None and not (of_other and _is_name(data, at, found)):
            yield found


def _is_of_other(data: bytes, at: int) -> bool:
    found = _OF_OTHER.match(data[at : at + _REACH])
    return found is not None and _OF_SOMETHING_ELSE.isdisjoint((found.group(1) or b"").lower().split())


def _is_name(data: bytes, at: int, found: Candidate) -> bool:
    """Return True if the value said to be the key of a thing is its name, and no password to an account with it."""
    said, written = data[at : found.start], data[found.start : found.end]
    return _SECURED.search(said) is None and _CHOSEN.search(written) is None


def _places(data: bytes, word: Match, at: int, until: int) -> Iterator[tuple[int, Link]]:
    """Yield the positions where a word's value may begin."""
    near = data[at : min(at + _REACH, until)]
    assigned = _ASSIGN.match(near)
    if assigned is not None:
        sign = assigned.group(1)
        loose = sign == b":" or (sign not in (b"=", b"=>", b":=") and assigned.end() > assigned.end(1))
        yield at + assigned.end(), Link.NAMED if loose else Link.ASSIGNED
        return
    said = (near[:1] in (b" ", b",") and at == word.end()) or near[:3] == b"'s " or near[:2] == b" ("
    if not said and near[:1] != b" ":
        return
    stop = _SENTENCE_END.search(near)
    near = near if stop is None else near[: stop.start() + 1]
    first = True
    for tried, link in enumerate(_LINKS.finditer(near)):
        between = near[: link.start()]
        if tried == _MAX_LINKS or between.count(b" ") > _MAX_WORDS_BETWEEN or not (said or link.group(1)):
            break
        verb = link.group(1) or link.group(2)
        direct = first and (verb is not None or near[link.start() :].lstrip(b" )\"'")[:1] in (b":", b"="))
        yield at + link.end(), Link.SAID if direct and _OF_WHAT.search(between) is not None else Link.APART
        first = first and verb is None
    option = _OPTION_BEFORE.search(data[max(0, word.start() - 32) : word.start()]) is not None
    if near[:1] == b" ":
        yield at + 1, Link.ASSIGNED if option else Link.NONE
        of_what = _OF_SOMETHING.match(near)
        if of_what is not None:
            yield at + of_what.end(), Link.NONE


def _judged(data: bytes, word: Match, place: int, link: Link) -> Candidate | None:
    if word.start(_PHRASE) >= 0 and link is not Link.NONE and data[place : place + 1] not in (b'"', b"'"):
        end = values.phrase_end(data, place, sure=link in (Link.ASSIGNED, Link.NAMED), digits=True)
        if end is not None:
            return Candidate(place, end, FindingKind.PASSWORD, Confidence.MEDIUM, "passphrase")
    value = values.read(data, place, link)
    if value is None:
        return None
    if word.start(_KEY) >= 0:
        return _key(data, word, value, link)
    weak = word.start(_WEAK) >= 0
    if link is Link.NAMED and not weak and not value.quoted:
        end = values.phrase_end(data, place, sure=False)
        if end is not None:
            return Candidate(place, end, FindingKind.PASSWORD, Confidence.MEDIUM, "passphrase")
    sure = values.judged_password(data, value, link, weak=weak and link is not Link.ASSIGNED)
    if sure is None:
        return None
    kind, rule = FindingKind.PASSWORD, "password"
    if _CONNECTION.search(data[max(0, word.start() - _CONNECTION_REACH) : word.start()]) is not None:
        kind, rule = FindingKind.CONNECTION_PASSWORD, "connection-string"
    return Candidate(value.start, values.whole(data, value), kind, sure, rule)


def _key(data: bytes, word: Match, value: Value, link: Link) -> Candidate | None:
    sure = values.judged_token(data, value, link)
    if b"cred" in (word.group() or b"").lower() and link is not Link.NONE:
        pair = _PAIR.match(data[value.start : min(value.end, value.start + values.MAX_JUDGED)])
        if pair is not None:
            part = Value(value.start + pair.start(1), value.start + pair.end(1), quoted=False)
            sure = values.judged_password(data, part, Link.APART, weak=False)
    return None if sure is None else Candidate(value.start, values.whole(data, value), FindingKind.TOKEN, sure, "token")
