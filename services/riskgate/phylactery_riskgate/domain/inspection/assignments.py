"""Finds what is written beside a word that says it is secret: assignments, sentences, URLs, headers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from phylactery_riskgate.domain.inspection.candidates import Candidate, Sight, text_of
from phylactery_riskgate.domain.inspection.expressions import Match, expression
from phylactery_riskgate.domain.inspection.kinds import Confidence, FindingKind
from phylactery_riskgate.domain.inspection.text import readings

_LOGIN_WORDS = (
    r"pass[ _-]?word|passwd|pass[ _-]?phrase|passcode|pwd|contrasen(?:y?a|as)|\bclaves?|_clave|senhas?|"
    r"mot[ _-]de[ _-]passe|\bmdp|passwort|kennwort|parola[ _-]?chiave"
)
_KEY_WORDS = (
    r"api[ _-]?key|access[ _-]?key|secret[ _-]?key|auth[ _-]?key|account[ _-]?key|private[ _-]?key|signing[ _-]?key|"
    r"encryption[ _-]?key|client[ _-]?secret|app[ _-]?secret|shared[ _-]?secret|secret|secreto|credentials?|credencial|"
    r"auth[ _-]?token|access[ _-]?token|refresh[ _-]?token|bearer[ _-]?token|token|clave[ _-]?api|clave[ _-]secreta"
)
_ANY_WORD = expression(f"(?i:{_LOGIN_WORDS}|{_KEY_WORDS})")

_VALUE = (
    r"""(?:\\"((?:[^"\\\n]|\\[^"\n])+)\\"|"((?:[^"\\\n]|\\[^\n])+)"|'((?:[^'\\\n]|\\[^\n])+)'|([^\s"'<>;&,¤\\]+))"""
)
_ASSIGNED = expression(
    rf"(?i:(?:({_LOGIN_WORDS})|{_KEY_WORDS})([_-][\w-]*)?)"
    r"(?:"
    r"""(?:[\\"'\])]{0,3} {0,4}(?:=>|:=|={1,3}|:|<-) {0,4}|>)"""
    r"|(?i:((?: [\w.-]+){0,5} (?:es|is|sera|ist|est|e|son|are)(?: ?:)? )|((?: [\w.-]+){1,4} ?[:=] ?))"
    r"|( )"
    rf"){_VALUE}"
)
"""Groups: 1 a password's word; 2 more of the name; 3 a sentence; 4 words between; 5 only a space; 6 to 9 the value."""
_PASSWORD, _MORE_NAME, _SENTENCE, _WORDS_BETWEEN, _SPACE_ONLY, _FIRST_VALUE = 1, 2, 3, 4, 5, 6
_ABOUT_IT = expression(
    r"(?i)[_-](?:ur[il]|endpoint|path|file|filename|name|type|kind|ttl|expir\w*|seconds|minutes|at|count|limit|length|size"
    r"|policy|header|field|label|hint|prompt|regex|pattern|version|date)$"
)
"""Ends of a name that tell something of the secret: where it lies, how long it lives."""
_OPTION_BEFORE = expression(r"(?:^|[ \n\"'=])--?[\w-]*$")
_CONNECTION = expression(
    r"(?i)\b(?:server|host|hostname|data source|addr|address|database|initial catalog|user id|uid|user|username|dbname)"
    r" {0,2}= {0,2}[^;=\n]+[; ]"
)
_CONNECTION_REACH = 200

_URL = expression(r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s/?#@:\"'<>¤]*:([^\s/?@\"'<>¤]+)@[\w\[]")
_AUTHORIZATION = expression(
    r"(?i)authorization[\\\"' ]{0,4}[:=][\\\"' ]{0,4}(?:bearer|basic|token|apikey|digest)? {0,2}"
    r"([A-Za-z0-9+/=._~-]{8,})"
)
_BEARER = expression(r"(?i)\bbearer {1,2}([A-Za-z0-9+/=._~-]{20,})")

_NOT_A_VALUE = expression(
    r"(?i)^(?:https?://[^@]*|[.~]{0,2}/[\w./-]*/.*|\d{4}-\d\d-\d\d.*|arn:.*|\$[{(].*|(?-i:\$[A-Z_][A-Z0-9_]*)|%\(.*|%[a-z_]+%|\{.*|<.*|\[.*|\(.*|.*\$\{.*|.*\{\{.*|\*.*"
    r"|.*(?:\.\.\.|os\.environ|getenv|process\.env|placeholder|redacted|fixme).*|your[ _-].*|tu[ _-].*"
    r"|none|null|nil|true|false|undefined|optional|required|string|str|int|bytes|bool|boolean|object|text|enter.*"
    r"|introduce.*|input|prompt|hidden|env|file|vault|secret.?manager|incorrect[ao]?|invalid[ao]?|wrong|error|example"
    r"|ejemplo|dummy|(?:my|new|old|the|la|tu|mi|nueva|current|confirm)?[ _-]?(?:pass[ _-]?word|passwd|contrasena|clave"
    r"|secret|token|api[ _-]?key|senha|passwort|mot de passe)s?)$"
)
"""What stands where a secret would, and is none: a variable, a type, a drawn blank, the word itself."""
_CODE = expression(r"^[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$|^[A-Za-z_]\w*\[|^[A-Za-z_.]+\(|^[a-z]+(?:_[a-z]+)+$")
_TRAILING = b".,:?)]}"

_MIN_QUOTED, _MIN_MIXED, _LONG_MIXED, _MIN_DIGITS = 4, 6, 8, 6
_MIN_TOKEN, _LONG_TOKEN, _SURE_BITS, _MIN_TOKEN_BITS = 8, 16, 3.0, 2.0
_MIN_DIFFERENT = 3


def assignments(sight: Sight) -> Iterator[Candidate]:
    """Finds every value that a word, a URL or a header says is secret."""
    data = sight.data
    if b"://" in data:
        for found in _URL.finditer(data):
            sure = _judged_url(data[slice(*found.span(1))])
            if sure is not None:
                yield Candidate(*found.span(1), FindingKind.URL_PASSWORD, sure, "url-password")
    lower = data.lower()
    if b"authorization" in lower or b"bearer" in lower:
        yield from _headers(data)
    if _ANY_WORD.search(data) is not None:
        for found in _ASSIGNED.finditer(data):
            yield from _assigned(data, found)


def names_secret(name: str) -> bool:
    """Says whether a name says of what it stands for that it is secret."""
    return any(_ANY_WORD.search(reading.data) is not None for reading in readings(name))


def _judged_url(value: bytes) -> Confidence | None:
    if _NOT_A_VALUE.search(value) is not None:
        return None
    return Confidence.HIGH if len(set(value)) >= _MIN_DIFFERENT else Confidence.LOW


def _headers(data: bytes) -> Iterator[Candidate]:
    for pattern in (_AUTHORIZATION, _BEARER):
        for found in pattern.finditer(data):
            value = data[slice(*found.span(1))]
            if _NOT_A_VALUE.search(value) is None and len(set(value)) >= _MIN_DIFFERENT:
                sure = Confidence.HIGH if _bits(value) >= _SURE_BITS else Confidence.MEDIUM
                yield Candidate(*found.span(1), FindingKind.AUTHORIZATION, sure, "authorization-header")


def _assigned(data: bytes, found: Match) -> Iterator[Candidate]:
    group = next(number for number in range(_FIRST_VALUE, _FIRST_VALUE + 4) if found.start(number) >= 0)
    start, end = found.span(group)
    quoted = group < _FIRST_VALUE + 3
    if (
        found.start(_SPACE_ONLY) >= 0
        and _OPTION_BEFORE.search(data[max(0, found.start() - 32) : found.start()]) is None
    ):
        return
    if not quoted:
        end -= len(data[start:end]) - len(data[start:end].rstrip(_TRAILING))
    spoken = found.start(_SENTENCE) >= 0 or found.start(_WORDS_BETWEEN) >= 0
    value = data[start:end]
    password = found.start(_PASSWORD) >= 0
    if _ABOUT_IT.search(found.group(_MORE_NAME) or b"") is not None:
        return
    if not value or _NOT_A_VALUE.search(value) is not None or len(set(value)) < _MIN_DIFFERENT:
        return
    if not quoted and (_CODE.search(value) is not None or data[end : end + 1] == b"("):
        return
    sure = (
        _password(value, quoted=quoted, spoken=spoken, apart=data[start - 1 : start] == b" ")
        if password
        else _token(value)
    )
    if sure is None:
        return
    kind, rule = (FindingKind.PASSWORD, "password") if password else (FindingKind.TOKEN, "token")
    if password and _CONNECTION.search(data[max(0, found.start() - _CONNECTION_REACH) : found.start()]) is not None:
        kind, rule = FindingKind.CONNECTION_PASSWORD, "connection-string"
    yield Candidate(start, end, kind, sure, rule)


def _password(value: bytes, *, quoted: bool, spoken: bool, apart: bool) -> Confidence | None:
    """Judges a password: in quotes or right behind "=" almost any text is one, in a sentence only what is no word."""
    text = text_of(value)
    letters, digits = any(map(str.isalpha, text)), any(map(str.isdigit, text))
    signs = any(not char.isalnum() and char not in " .-/" for char in text)
    mixed = letters and (digits or signs)
    if " " in text:
        return Confidence.LOW
    if mixed and len(text) >= _LONG_MIXED:
        return Confidence.HIGH
    if mixed and len(text) >= _MIN_MIXED:
        return Confidence.MEDIUM if spoken else Confidence.HIGH
    if digits and not letters:
        return Confidence.MEDIUM if len(text) >= _MIN_DIGITS and text.isdigit() else Confidence.LOW
    if quoted and len(text) >= _MIN_QUOTED:
        return Confidence.MEDIUM
    return Confidence.MEDIUM if len(text) >= _MIN_MIXED and not apart and not spoken else None


def _token(value: bytes) -> Confidence | None:
    """Judges a key or token: long, without spaces, and as mixed as chance."""
    text = text_of(value)
    if len(text) < _MIN_TOKEN or " " in text:
        return None
    letters, digits = any(map(str.isalpha, text)), any(map(str.isdigit, text))
    bits = _bits(value)
    cased = text.lower() != text and text.upper() != text
    if len(text) >= _LONG_TOKEN and bits >= _SURE_BITS and letters and digits:
        return Confidence.HIGH
    if letters and (digits or (cased and bits >= _SURE_BITS and len(text) >= _LONG_TOKEN)) and bits >= _MIN_TOKEN_BITS:
        return Confidence.MEDIUM
    return Confidence.LOW if digits else None


def _bits(value: bytes) -> float:
    """Answers the entropy of a character of a value, in bits."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
