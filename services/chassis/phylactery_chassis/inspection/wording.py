"""Words people say of a password, in English and Spanish, folded to plain letters: what is none itself."""

from __future__ import annotations

from phylactery_chassis.inspection.expressions import expression

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
_WORDS = frozenset(_ENGLISH.split()) | frozenset(_SPANISH.split())
_ENDINGS = expression(
    r"(?:[^e]ed|ing|able|ible|less|ful|mente|[ai]d[oa]s?|[aeiou]tory|ness|tion|sion|cion|encia|ancia|idad)$"
)


def says_something_else(word: str) -> bool:
    """Return whether a word in small letters tells of a password: "expired", "the", "segura"."""
    return word in _WORDS


def ends_like_a_word(word: str) -> bool:
    """Return whether a word in small letters ends as adjectives and participles do."""
    return _ENDINGS.search(word.encode("latin-1")) is not None
