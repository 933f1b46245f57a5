"""Where a value named as secret begins and ends, and whether it is a password, a key or a token."""

from __future__ import annotations

import math
from collections import Counter
from enum import Enum, auto
from typing import NamedTuple

from phylactery_chassis.inspection.candidates import text_of
from phylactery_chassis.inspection.expressions import expression
from phylactery_chassis.inspection.kinds import Confidence
from phylactery_chassis.inspection.text import MASKED

_ENGLISH = """
    a able about above accepted after again all already also always an and another any anything are as asked at
    available away bad bank based be because been before being below best better between blank broken by can case
    changed clear common complex compliant compromised confidential considered correct current currently dead
    default defaultpassword different difficult easy either empty encrypted enough enter every everything exactly
    exposed false field fine fixed for forgotten free from gone good great had hard has hashed he hello her here
    hidden him his how i if important impossible in insecure inside invalid is it its just kept known last leaked
    less letter letters like limited listed locked long longer lost lower lowercase made mandatory many maybe me
    memorable mine missing more most much must my necessary needed never new next no none normal not nothing now
    obvious of off ok okay old on once one only open optional or other our out outdated over page password
    passwords perfect permanent personal plain please poor preset private probably protected public ready really
    recommended required reset right safe same saved secret secure sensitive set shared she short shorter should
    similar simple so some something soon sort static still stolen strong stronger stuff such sure temporary
    terrible that the their them then there these they thing this those to together too true two unchanged
    undefined under unique unknown unlimited unsafe unset until up uppercase used useful useless usual valid very
    visible vital vulnerable was we weak weaker well what when where which who whole why will with without word
    words worse wrong yes you your yours
"""
_SPANISH = """
    abierta abierto ahi ahora al algo alguien alta ambas ambos antes aqui asi aun aunque bien buena bueno cada
    caduca caducada cambia campo clara claro clave como comun con confidencial correcta correcto corta corto cosa
    cual cualquier cuando de debe debil del demasiado diferente dificil distinta distinto donde el ella ellas ello
    ellos empezar en entender entre era eres es esa ese eso esta estan estas este esto estos facil falsa falso fea
    fija fue fuerte general genial grande ha hay identica igual importante incorrecta incorrecto insegura inseguro
    la larga largo las le libre lista lo los luego mala malo mas mayor me mejor menor menos mi mia mio misma mismo
    mucho muy nada necesaria necesario ni no nosotros nuestra nuestro nueva nuevo nula o obligatoria obligatorio
    obvia obvio opcional otra otro para peor pero personal por porque principal privada privado publica publico
    que quien reciente rota saber se secreta secreto segun segura seguro ser si siempre simple sin sobre solo son
    su suya suyo tal tambien tan temporal tiene todas todo tu tuya tuyo un una unas unica unico unos usted vacia
    vacio valida valido varias vieja viejo vuestra y ya yo
"""
_NOT_KNOWN = """
    none nothing pending unknown unset empty blank missing later todo tbd tba tbc tbs n/a na unassigned undecided
    undefined pendiente pendientes ninguna ninguno ningun nada desconocida desconocido vacia vacio indefinida indefinido
    luego despues ausente s/d n/d nd
"""
_BLANKS = frozenset(_NOT_KNOWN.split())
"""What stands where no value is known yet."""
_WORDS = frozenset(_ENGLISH.split()) | frozenset(_SPANISH.split()) | _BLANKS
_ENDINGS = expression(
    r"(?:[^e]ed|ing|able|ible|less|ful|mente|[ai]d[oa]s?|[aeiou]tory|ness|tion|sion|cion|encia|ancia|idad)$"
)


def says_something_else(word: str) -> bool:
    """Return True if a lower-case word describes a password rather than being one: "expired", "the", "segura"."""
    return word in _WORDS


def ends_like_a_word(word: str) -> bool:
    """Return True if a lower-case word ends like an adjective or participle."""
    return _ENDINGS.search(word.encode("latin-1")) is not None


MAX_JUDGED = 512
"""How many characters of a value are examined, so that the work per word is bounded."""
_MAX_WORDS_MORE = 4


class Link(Enum):
    """What separates the word from the value."""

    ASSIGNED = auto()
    """``=`` and similar, directly after the name."""
    NAMED = auto()
    """``:`` directly after the word, as in prose and configuration files."""
    SAID = auto()
    """"is", directly after the word or after the name of what the password is for."""
    APART = auto()
    """More words in between, or "to": only a value that is not a natural-language word counts."""
    NONE = auto()
    """Only a space."""


class Value(NamedTuple):
    """The place of a value in the folded text, and whether it is quoted."""

    start: int
    end: int
    quoted: bool


_SPACES = expression(r"[ \t]{1,3}")
_QUOTED = (
    expression(rf"""\\"((?:[^"\\\n{MASKED}]|\\[^"\n]){{1,{MAX_JUDGED}}})\\\""""),
    expression(rf"""\"((?:[^"\\\n{MASKED}]|\\[^\n]){{1,{MAX_JUDGED}}})\""""),
    expression(rf"""'((?:[^'\\\n{MASKED}]|\\[^\n]){{1,{MAX_JUDGED}}})'(?:[^A-Za-z0-9]|$)"""),
)
_END = expression(
    rf"[\s{MASKED}]|"
    r"""[;&,](?:amp;|[A-Za-z_][\w.-]{0,30} ?[=:]|["'\s]|$)|\\["']|["'](?:[^A-Za-z0-9]|$)|</|%3[Bb]|\)[;,]|\\n|\\r"""
)
"""Where an unspaced run ends: at a parameter, the end of a text or the end of an element."""
_TRAILING = b".,:;?)]}>"
_OPENED = {b")": b"(", b"]": b"[", b"}": b"{", b">": b"<"}

_FINAL = expression(
    r"(?i)^(?:[.,;:!?)\"'\]}]*(?:\s*$|\s*\n)|[.,;:!)]+ | (?:and|but|y|pero|please|por favor|thanks|gracias|btw)\b)"
)

_NOT_A_VALUE = expression(
    r"(?i)^(?:https?://[^@]*|[.~]{0,2}/[\w./-]*/.*|\d{4}-\d\d-\d\d.*|arn:.*|\$[{(].*|(?-i:\$[A-Z_][A-Z0-9_]*)|%\(.*|%[a-z_]+%"
    r"|\{.*|<.*|\[.*|\(.*|.*\$\{.*|.*\{\{.*|\*.*|!vault|[|>]-?|:[a-z_]+"
    r"|.*(?:\.\.\.|os\.environ|getenv|process\.env|placeholder|redacted|fixme).*|your[ _-].*|tu[ _-].*"
    r"|none|null|nil|true|false|undefined|optional|required|string|str|int|bytes|bool|boolean|object|text|enter.*"
    r"|introduce.*|input|prompt|hidden|env|file|vault|secret.?manager|incorrect[ao]?|invalid[ao]?|wrong|error|example"
    r"|ejemplo|dummy|(?:my|new|old|the|la|tu|mi|nueva|current|confirm)?[ _-]?(?:pass[ _-]?word|passwd|contrasena|clave"
    r"|secret|token|api[ _-]?key|senha|passwort|mot de passe)s?"
    r"|sha-?\d{1,3}|md5|base-?64|utf-?8|argon2\w{0,2}|bcrypt|scrypt|pbkdf2|oauth-?2?|2fa|mfa|ipv[46]|x509"
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?-i:[\w-]+\.(?:txt|md|py|js|ts|go|rs|json|ya?ml|toml|ini|cfg|pdf|docx?|xlsx?|csv|html?|png|jpg)))$"
)
"""Placeholders in the position of a secret that are not one: a variable, a type, a blank, a file, the word itself."""
_CODE = expression(r"^[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$|^[A-Za-z_]\w*\[|^[A-Za-z_.]+\(|^[a-z]+(?:_[a-z]+)+$")
_OPERATOR_AFTER = expression(r"^ (?:=|!=|==|is not|is None|if|or|and|\|)( |$)")
_MEASURE = expression(
    r"(?i)^\d{1,4}(?:[-/]\d{1,4})?[- ]?(?:st|nd|rd|th|[hdsx]|hrs?|days?|min|mins|characters?|chars?|letters?|digits?"
    r"|bits?|bytes?|months?|years?|weeks?|times?|dias?|mes|meses|anos?|semanas?|letras?|caracteres?|digitos?|horas?"
    r"|veces|cents?|am|pm)?$|^\d{1,2}[:/.]\d{2}(?:[:/.]\d{2,4})?$|^\d+[.,]\d+%?$|^[$]?\d+[.,]?\d*[$%]?$"
)
"""A number with a unit, a time, a date, a price: not a password, except where digits alone may be one."""

_CLASS_NAME = expression(r"^(?:[A-Z][a-z]+)+$|^[a-z]+(?:[A-Z][a-z]+)+$")
_PARAMETER = expression(r"^[A-Za-z_][\w.-]*=|^(?:[A-Za-z_]\w*\.)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
"""Not a value within a sentence: another parameter, or a constant's name."""
_NAME = expression(r"^[A-Za-z_]\w*$")
_DIGIT = expression("[0-9]")
_CALL = expression(r"^[A-Za-z_][\w.]*[\[(]|(?i:(?:password|secret|token|key|value)$)")

_MIN_QUOTED, _MIN_MIXED, _LONG_MIXED, _MIN_DIGITS, _MIN_WORD = 4, 5, 8, 4, 5
_MIN_TOKEN, _LONG_TOKEN, _SURE_BITS, _MIN_TOKEN_BITS = 8, 16, 3.0, 2.0
_MIN_DIFFERENT, _MIN_PHRASE, _MIN_SURE_PHRASE, _MAX_PHRASE = 3, 3, 2, 24


def read(data: bytes, at: int, link: Link) -> Value | None:
    """Return the value that begins at a position, None if none does."""
    if data[at : at + 1] in (b'"', b"'", b"\\"):
        near = data[at : at + MAX_JUDGED + 4]
        for form in _QUOTED:
            found = form.match(near)
            if found is not None:
                return Value(at + found.start(1), at + found.end(1), quoted=True)
        at += 2 if data[at : at + 2] == b'\\"' else 1
    end = _run_end(data, at)
    if end == at:
        return None
    if link in (Link.NAMED, Link.SAID):
        end = _more_words(data, at, end)
    return Value(at, end, quoted=False)


def _run_end(data: bytes, at: int, *, limit: int | None = MAX_JUDGED) -> int:
    """Return the end of the unspaced run without its closing punctuation, by default within a bound."""
    stop = len(data) if limit is None else min(len(data), at + limit)
    if at >= stop or _END.match(data, at, at + 1) is not None:
        return at
    found = _END.search(data, at + 1, stop)
    end = stop if found is None else found.start()
    while end > at and data[end - 1] in _TRAILING and data[at:end].count(_OPENED.get(data[end - 1 : end], b"\0")) == 0:
        end -= 1
    return end


def whole(data: bytes, value: Value) -> int:
    """Return the real end of a value, of which only the beginning may have been examined."""
    judged = value.end - value.start >= MAX_JUDGED and not value.quoted
    return max(value.end, _run_end(data, value.end, limit=None)) if judged else value.end


def _more_words(data: bytes, at: int, end: int) -> int:
    """Return the end including following words that belong to it: "Sunny-Day 2024!", but not "Hola1234 para entrar"."""
    for _ in range(_MAX_WORDS_MORE):
        space = _SPACES.match(data, end)
        if space is None or not _unlike_words(text_of(data[at : min(end, at + MAX_JUDGED)])):
            break
        following = _run_end(data, space.end())
        text = text_of(data[space.end() : min(following, space.end() + MAX_JUDGED)])
        if not text or not _part(text) or _NOT_A_VALUE.search(text.encode("latin-1")) is not None:
            break
        end = following
    return end


def _part(text: str) -> bool:
    """Return True if a word may continue a password: it contains a digit or symbol and is not a measure."""
    return any(map(str.isdigit, text)) or any(_odd(char) for char in text)


def _unlike_words(text: str) -> bool:
    return any(map(str.isdigit, text)) or any(not char.isalnum() and char != " " for char in text)


def _odd(char: str) -> bool:
    """Return True if a character occurs in no natural-language word."""
    return not char.isalnum() and char not in " .-/',:()"


def judged_password(data: bytes, value: Value, link: Link, *, weak: bool) -> Confidence | None:
    """Rate how surely a value is a password.

    Quoted or after "=" almost any text counts; in a sentence only what is not a natural-language word. ``weak`` says
    that the word before it has other senses: "the key is", "la clave está".
    """
    written = data[value.start : min(value.end, value.start + MAX_JUDGED)]
    if not _may_be(data, value, written, link):
        return None
    text = text_of(written)
    letters, digits = any(map(str.isalpha, text)), sum(map(str.isdigit, text))
    if letters and (digits or any(map(_odd, text))):
        loose = link in (Link.SAID, Link.APART, Link.NONE) or (link is Link.NAMED and not value.quoted)
        return _mixed(text, loose=loose, digits=bool(digits), weak=weak)
    if digits and not letters:
        enough = digits >= _MIN_DIGITS and link is not Link.NONE and (text.isdigit() or not weak)
        return Confidence.MEDIUM if enough else Confidence.LOW
    if " " in text or (value.quoted and not weak):
        told = value.quoted and not weak and link is not Link.NONE and (" " not in text or link is not Link.APART)
        return Confidence.MEDIUM if told and len(text) >= _MIN_QUOTED else Confidence.LOW
    return _lone(data, value, text, link, weak=weak)


def _lone(data: bytes, value: Value, text: str, link: Link, *, weak: bool) -> Confidence | None:
    """Rate a single unquoted word of letters."""
    if link is Link.ASSIGNED:
        return Confidence.MEDIUM if len(text) > _MIN_WORD and not weak else None
    if link not in (Link.SAID, Link.NAMED) or not _is_word(data, value, text):
        return None
    return Confidence.LOW if weak else Confidence.MEDIUM


def _mixed(text: str, *, loose: bool, digits: bool, weak: bool) -> Confidence | None:
    if loose and _MEASURE.search(text.encode("latin-1", "replace")) is not None:
        return None
    if weak and not digits:
        return Confidence.LOW
    if len(text) >= _LONG_MIXED:
        return Confidence.HIGH
    if len(text) >= _MIN_MIXED:
        return Confidence.MEDIUM if loose else Confidence.HIGH
    return Confidence.MEDIUM if not loose and len(text) >= _MIN_QUOTED else Confidence.LOW


def _may_be(data: bytes, value: Value, written: bytes, link: Link) -> bool:
    """Return True if a value is not code, a name or a blank."""
    if not written or _NOT_A_VALUE.search(written) is not None or text_of(written).lower().rstrip(".!?") in _BLANKS:
        return False
    if len(set(written)) < _MIN_DIFFERENT and not written.isdigit():
        return False
    return value.quoted or not _is_code(data, value, written, link)


def _is_code(data: bytes, value: Value, written: bytes, link: Link) -> bool:
    if data[value.end : value.end + 1] == b"(":
        return True
    if link in (Link.SAID, Link.APART, Link.NONE) and _PARAMETER.search(written) is not None:
        return True
    if link in (Link.SAID, Link.APART) or _DIGIT.search(written) is not None:
        return _CALL.search(written) is not None
    follows = data[value.end : value.end + 8]
    named = _NAME.search(written) is not None and _OPERATOR_AFTER.search(follows) is not None
    return named or _CODE.search(written) is not None


def _is_word(data: bytes, value: Value, text: str) -> bool:
    """Return True if a lone final word may be a password rather than a description of one."""
    if len(text) < _MIN_QUOTED or " " in text or not any(map(str.isalpha, text)):
        return False
    lowered = text.lower()
    parts = lowered.replace("/", "-").split("-")
    if any(map(says_something_else, parts)) or ends_like_a_word(lowered):
        return False
    return _FINAL.search(data[value.end : value.end + 16]) is not None


def phrase_end(data: bytes, at: int, *, sure: bool, digits: bool = False) -> int | None:
    """Return the end of a phrase of words unlikely in that order, None if it may be a sentence."""
    end = data.find(b"\n", at, at + MAX_JUDGED)
    end = min(len(data), at + MAX_JUDGED) if end < 0 else end
    for sign in (b". ", b", ", b"; ", MASKED.encode("latin-1")):
        stop = data.find(sign, at, end)
        end = stop if stop >= 0 else end
    words = text_of(data[at:end]).rstrip(".!?\"' ").split(" ")
    size = len(" ".join(words))
    if not (_MIN_SURE_PHRASE if sure else _MIN_PHRASE) <= len(words) <= _MAX_PHRASE:
        return None
    if not all((word.isalpha() and word.islower()) or (digits and word.isdigit()) for word in words):
        return None
    return at + size if sure or not any(map(says_something_else, words)) else None


def judged_token(data: bytes, value: Value, link: Link) -> Confidence | None:
    """Rate how surely a value is a key or token: long, without spaces, and as mixed as random text."""
    written = data[value.start : min(value.end, value.start + MAX_JUDGED)]
    text = text_of(written)
    constant = link in (Link.APART, Link.NONE) and _PARAMETER.search(written) is not None
    if constant or len(text) < _MIN_TOKEN or " " in text or not _may_be(data, value, written, Link.ASSIGNED):
        return None
    letters, digits = any(map(str.isalpha, text)), any(map(str.isdigit, text))
    entropy = bits(written)
    cased = text.lower() != text and text.upper() != text
    if len(text) >= _LONG_TOKEN and entropy >= _SURE_BITS and letters and digits:
        return Confidence.HIGH
    if link is Link.NONE:
        return None
    cased = cased and _CLASS_NAME.search(written) is None
    if letters and (digits or (cased and entropy >= _SURE_BITS and len(text) >= _LONG_TOKEN)):
        return Confidence.MEDIUM if entropy >= _MIN_TOKEN_BITS else Confidence.LOW
    return Confidence.LOW if digits else None


def drawn(value: bytes) -> bool:
    """Return True if a value is a placeholder: a variable, a blank, or one character repeated."""
    return _NOT_A_VALUE.search(value) is not None or len(set(value)) < _MIN_DIFFERENT


def variable(value: bytes) -> bool:
    """Return True if a value is a variable reference: ``${PASSWORD}``."""
    return _NOT_A_VALUE.search(value) is not None


def sure_of(value: bytes) -> Confidence:
    """Rate a value whose header says what it is."""
    return Confidence.HIGH if bits(value[:MAX_JUDGED]) >= _SURE_BITS else Confidence.MEDIUM


def bits(value: bytes) -> float:
    """Return the entropy per character of a value, in bits."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
