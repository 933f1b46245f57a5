"""What RiskGate knows of Spanish and English, all of it about asking and none of it about any tool; folded."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SMALL: Final = _words(
    "a an the this that these those my your his her its our their me you him it us them i we he she they to of in on at"
    " for from by with and or as is are was were be been do does did can could would will shall should may please also"
    " too then now just so if there here any some all each every both also up out about into"
    " el la los las un una unos unas lo le les se me te nos os mi mis tu tus su sus nuestro nuestra nuestros nuestras"
    " este esta estos estas ese esa esos esas aquel aquella de del al a en con por para y e o u que como es son era ser"
    " favor tambien luego ahora si no hay todo toda todos todas cada ambos sobre puedes podrias podria quiero necesito"
)
"""Words that name nothing by themselves and may stand between the words of a phrase."""

ARTICLES: Final = _words(
    "a an the my your his her our their this that these those el los las un una unos unas mi mis tu tus su sus nuestro"
    " nuestra nuestros nuestras este esta estos estas ese esa esos esas"
)
"""Of those, what a phrase of the catalog need not have in common with the words."""

EXTENSIONS: Final = _words("txt doc docx xls xlsx ppt pptx pdf csv md odt ods json yaml yml html png jpg jpeg zip")
"""What a file's name ends with and people leave out."""

CURRENCIES: Final = _words(
    "eur euro euros usd dollar dollars gbp pound pounds dolar dolares libra libras pesos chf yen"
)

NEGATIONS: Final = _words("not dont never nunca jamas")
NEAR_NEGATIONS: Final = _words("no without sin tampoco")
"""These deny the verb they stand before; with a thing between, they deny the thing."""
IDIOMS: Final = (("make", "sure"), ("be", "sure"), ("make", "certain"))
"""Two words that ask for what follows, and for nothing themselves."""

BEFORE_NOUNS: Final = ARTICLES | _words(
    "of in by via per with from no number about on de del en por con al nuevo nueva ningun ninguna numero sobre"
    " many more few several some all every each any other cuantos cuantas muchos muchas varios varias todos todas algun"
    " algunos algunas cada otro otra otros otras"
)
"""Behind one of these stands a thing: the messages, of payments; nobody is asked to do it."""
DONE: Final = ("ed", "ado", "ada", "ados", "adas", "ido", "ida", "idos", "idas", "aron", "ieron")
"""What was done already ends like this, and nobody asks for it."""

FORGETTING: Final = _words("forget olvides olvide olvidar olvidad fail dejes deje dejar hesitate dudes dude only solo")
"""After a negation these ask for what follows: do not forget to."""

MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan enero ene",
            "february feb febrero",
            "march mar marzo",
            "april apr abril abr",
            "may mayo",
            "june jun junio",
            "july jul julio",
            "august aug agosto ago",
            "september sep sept septiembre setiembre",
            "october oct octubre",
            "november nov noviembre",
            "december dec diciembre dic",
        ),
        1,
    )
    for name in names.split()
}
WEEKDAYS: Final = {
    name: day
    for day, names in enumerate(
        (
            "monday lunes",
            "tuesday martes",
            "wednesday miercoles",
            "thursday jueves",
            "friday viernes",
            "saturday sabado",
            "sunday domingo",
        )
    )
    for name in names.split()
}
RELATIVE_DAYS: Final = _words(
    "today tomorrow tonight yesterday monday tuesday wednesday thursday friday saturday sunday week weekend month year"
    " hoy manana ayer lunes martes miercoles jueves viernes sabado domingo semana mes ano pasado"
)

HIGHEST: Final = _words(
    "largest biggest longest highest greatest top best maximum mayor grande largo larga alto alta caro cara expensive"
    " mejor maxima maximo"
)
LOWEST: Final = _words(
    "smallest shortest lowest cheapest fewest worst minimum menor pequeno pequena corto corta bajo baja barato barata"
    " peor minima minimo cheap"
)
NEWEST: Final = _words("latest last newest recent ultimo ultima reciente nuevo nueva")
OLDEST: Final = _words(
    "oldest earliest first next upcoming proximo proxima siguiente primero primera primer antiguo antigua viejo vieja"
)
COMPARING: Final = _words("mas menos most least")
TURNING: Final = _words("menos least")
"""The least expensive is the cheapest."""
QUANTIFIERS: Final = _words(
    "all any every each both others other rest remaining everything todos todas todo cada cualquier cualquiera ambos"
    " ambas otros otras resto demas"
)
"""Who says one of these may mean more than what they pick."""
PERCENT: Final = _words("percent percentage ciento porciento")

CALCULATING: Final = _words(
    "difference total sum half percent percentage plus minus extra additional remaining rest share split average vat"
    " tax fee double twice increased increase decreased discount tip diferencia suma mitad ciento porcentaje mas menos"
    " adicional restante resto reparte divide dividido media promedio iva impuesto comision doble aumento aumentado"
    " descuento propina much excess sobra demasiado"
)

DETAILS: Final = _words(
    "details detail information info data profile everything datos dato informacion detalles detalle perfil ficha todo"
)
"""Who asks for these to be sent may mean what is private."""

PRONOUNS: Final = _words("i you we they he she it not yo tu usted nosotros ellos no")
OWN: Final = _words("following below siguientes siguiente")
"""The following tasks are in the words themselves."""

DELEGATING: Final = (
    "do|follow|execute|perform|complete|carry|handle|finish|process * action|task|instruction|step|todo|request",
    "do|follow * say|said|ask|asked|tell|told|specified|described|instructed|written|mentioned",
    "haz|sigue|ejecuta|realiza|completa|cumple|atiende|hacer|seguir|realizar * accion|tarea|instruccion|paso|pendiente",
    "haz|sigue|hacer|seguir * dice|pide|indica|pone|diga|explica|manda",
)
"""How people point at a place that tells what to do: one of the first words, then within a few one of the next."""
