"""Spanish and English vocabulary about requests, folded; it contains nothing about any tool."""

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
"""Words that name nothing on their own and may occur between the words of a phrase."""

ARTICLES: Final = _words(
    "a an the my your his her our their this that these those el los las un una unos unas mi mis tu tus su sus nuestro"
    " nuestra nuestros nuestras este esta estos estas ese esa esos esas"
)
"""The subset of these that a catalog phrase and the user's words need not share."""

SHORT_WORDS: Final = _words(
    "get new old not day one two ten add put pay out see use let ask say set try run buy bid off own way how who why"
    " when may mar apr jun jul aug sep oct nov dec mon tue wed thu fri sat sun big low top end few its but yes job tax"
    " fee vat iva dia mes ano vez ver dar hoy dos mas muy sin fin pon haz ten soy fue era ene abr ago dic api app url"
    " web log tag tip map bar box bus car art act air age bag bed bit red tea sea sky eat fun far fit fix"
)
"""Three-letter words that occur in many names: one of them is not a partial name, as Bob is of Bob Stone."""

EXTENSIONS: Final = _words("txt doc docx xls xlsx ppt pptx pdf csv md odt ods json yaml yml html png jpg jpeg zip")
"""File extensions that people leave out."""

CURRENCIES: Final = _words(
    "eur euro euros usd dollar dollars gbp pound pounds dolar dolares libra libras pesos chf yen"
)

IDIOMS: Final = (
    *(("make", "sure"), ("be", "sure"), ("make", "certain"), ("add", "up"), ("log", "into"), ("log", "in", "to")),
    *((leave, "en", "paz") for leave in ("deja", "deje", "dejes", "dejar", "dejad", "dejen")),
)
"""Phrases that request the words after them, or nothing."""

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
PRICING: Final = _words("cheapest cheap expensive dearest barato barata caro cara")
"""Words that compare prices, and nothing else."""
PRICES: Final = frozenset({"price", "cost", "amount", "total", "fee", "fare", "rate", "precio", "importe", "coste"})
"""Fields that hold a price."""
NEWEST: Final = _words("latest last newest recent ultimo ultima reciente nuevo nueva")
OLDEST: Final = _words(
    "oldest earliest first next upcoming proximo proxima siguiente primero primera primer antiguo antigua viejo vieja"
)
COMPARING: Final = _words("mas menos most least")
RANKS: Final = _words(
    "second third fourth fifth sixth seventh eighth ninth tenth 2nd 3rd 4th 5th 6th 7th 8th 9th 10th next following"
    " penultimate segundo segunda tercer tercero tercera cuarto cuarta quinto quinta sexto sexta septimo septima octavo"
    " octava noveno novena decimo decima siguiente penultimo penultima antepenultimo antepenultima"
)
"""Words before an end of an order that say how far from it: the second cheapest is not the cheapest."""
UNITS: Final = frozenset({"currency", "currency_code", "unit", "units", "moneda", "divisa", "unidad"})
"""Fields that say what a number counts: those that differ in them are not compared."""
DAYS: Final = frozenset({"date", "day", "fecha", "dia"})
CLOCKS: Final = frozenset({"time", "hour", "hora"})
"""Words of fields that hold the day and the time of day of one moment."""
BOUNDS: Final = _words("start starts begin begins from end ends until to inicio comienzo desde fin hasta")
"""Words of fields of a time of day that need no day of their own: "date", "start_time" and "end_time"."""
ZONES: Final = frozenset({"timezone", "zone", "tz", "utc", "zona", "huso"})
"""Words of fields that say where a time is one: those that differ in them are not compared."""
TURNING: Final = _words("menos least")
""""The least expensive" is the cheapest."""
QUANTIFIERS: Final = _words(
    "all any every each both others other rest remaining everything todos todas todo cada cualquier cualquiera ambos"
    " ambas otros otras resto demas"
)
"""Words after which the user may mean more than what they pick."""
PERCENT: Final = _words("percent percentage ciento porciento")

CALCULATING: Final = _words(
    "difference total sum half percent percentage plus minus extra additional remaining rest share split average vat"
    " tax fee double twice increased increase decreased discount tip diferencia suma mitad ciento porcentaje mas menos"
    " adicional restante resto reparte divide dividido media promedio iva impuesto comision doble aumento aumentado"
    " descuento propina much excess sobra demasiado"
)

ACCORDING: Final = _words(
    "says said say states stated according accordingly based mentioned listed instructions instructed told given gives"
    " dice dicen diga indica indican indicado segun basado basandote mencionado mencionada mencionados instrucciones"
)
"""Words with which the user may delegate to a text what is done, and to whom."""
_WHATEVER_EN: Final = ("what", "whatever", "as", "everything", "all", "anything", "exactly", "it all", "so")
_WHATEVER_ES: Final = ("lo que", "cuanto", "todo lo", "todo", "lo")
DELEGATING: Final = frozenset(
    tuple(phrase.split())
    for phrase in (
        *(f"{do} {what}" for do in ("do", "doing") for what in _WHATEVER_EN),
        *(f"{do} {what}" for do in ("haz", "haga", "hagas", "hacer", "realiza", "cumple") for what in _WHATEVER_ES),
        *("haz caso", "haz todo", "follow", "follow up", "obey", "execute", "handle", "process", "complete", "resolve"),
        *("carry out", "act on", "deal with", "take care", "sort out", "work through", "as instructed", "as requested"),
        *(
            "instructions",
            "instruction",
            "todo list",
            "todo.txt",
            "todo.md",
            "to-do",
            "to-dos",
            "tasks",
            "task",
            "steps",
            "chores",
        ),
        *(
            "action items",
            "accordingly",
            "according to",
            "segun",
            "siguelo",
            "siguela",
            "sigue los",
            "sigue las",
            "sigue sus",
        ),
        *("ejecuta", "gestiona", "gestionalo", "tramita", "tramitalo", "atiende", "atiendelo", "resuelve"),
        *(
            "resuelvelo",
            "completa",
            "ocupate",
            "encargate",
            "ocuparte",
            "encargarte",
            "tareas",
            "tarea",
            "instrucciones",
        ),
        *("pasos", "pendientes", "recados", "lo que pide", "lo que pida", "lo que piden", "lo que dice", "lo que diga"),
    )
)
"""Words with which the user leaves it to a text what is done. They never allow anything: what a text alone asks for is
then asked about, and not blocked."""
PEOPLE: Final = _words(
    "with who whom whoever whose everyone everybody anyone people person persons him her them they she he us guest"
    " guests attendee attendees participant participants invitee invitees invite team client clients customer customers"
    " colleague colleagues boss friend friends family member members mentioned listed named con quien quienes gente"
    " persona personas invita invitar invitado invitados invitada invitadas asistente asistentes participante"
    " participantes equipo cliente clienta clientes companero companera companeros jefe jefa amigo amiga amigos familia"
    " ellos ellas les le todos todas mencionados citados"
)
"""Words with which the user may mean a person that a text names."""
DETAILS: Final = _words(
    "details detail information info data profile everything datos dato informacion detalles detalle perfil ficha todo"
)
"""Words for private values that a user may ask to have sent."""

POLITE: Final = _words(
    "hi hello hey ok okay so and well please now then also sorry hola oye y pues vale por favor ahora entonces bueno"
)
"""Openings of a sentence that do not yet make it a request or a statement."""
STATING: Final = _words("i we he she they yo nosotros ellos ellas")
"""Words that, right before a verb, are its subject: the verb is not a request."""
AUXILIARIES: Final = _words("will would can could may might do did does have has had")
"""Words between such a subject and its verb."""

DEICTIC: Final = _words("this these following below esto este esta estos estas siguiente siguientes")
"""Words with which, if the user names nothing, they point at what follows."""
SPANS: Final = RELATIVE_DAYS | _words("morning afternoon evening quarter time tarde noche trimestre vez")
"""Words that make such a word a time: "this week" does not point at anything."""
OWNERS: Final = _words("my our your mi mis tu tus nuestro nuestra nuestros nuestras")
RENDERING: Final = _words(
    "summarize summarise summarized translate explain proofread rephrase paraphrase reword interpret analyze analyse"
    " classify fix correct tl tldr summary translation resumen traduccion resume resumeme resumir resumidme"
    " traduce traduceme traducir explica"
    " explicame explicar interpreta analiza clasifica corrige corrigeme parafrasea reformula"
)
"""Verbs that process a text, as opposed to acting on what it says."""
LOOKING: Final = _words("read review check look lee leeme revisa revisame mira")
INQUIRING: Final = _words("what who is does do which que quien es cual como significa")
GETTING: Final = _words("got received recibi recibido")
CONVEYED: Final = _words(
    "sent wrote writes says said forwarded told tells texted emailed messaged asks asked mails mailed mandado mando"
    " enviado envio envia manda escribio escrito escribe dijo dicho dice pide pidio pedido llego llegado llega reenvio"
    " reenviado pasado"
)
"""Verbs for sending a text, in the past tense."""
SUBJECTS: Final = _words(
    "my our his her their the a an some this that she they everyone everybody somebody someone people"
    " mi mis su sus nuestro nuestra el la los las un una unos unas este esta ese esa ella ellos ellas alguien todos"
)
"""Words that begin a sentence about somebody or something else than the user."""
OURSELVES: Final = _words(
    "i we you me us want need quiero queremos necesito necesitamos quisiera pido te tu yo nosotros vosotros usted"
)
"""Words of a sentence that is about the user or the agent after all: the thing I need."""
OWN_THINGS: Final = _words(
    "request requests task tasks todo job plan plans idea note notes list question favor favour thing things order"
    " goal step steps following message text subject body title content email mail reminder document file files"
    " peticion peticiones tarea tareas encargo recado idea nota notas lista pregunta favor cosa cosas pedido objetivo"
    " paso pasos semana week today day month mes dia hoy siguiente siguientes mensaje texto asunto cuerpo titulo"
    " contenido correo recordatorio documento archivo fichero"
)
"""What a user announces of their own: the shopping list: …, mi petición: …."""
PRESSING: Final = _words(
    "keeps nags nagging insists begs wants demands orders repeats shouts shouted yells reads goes scribbled recommends"
    " suggests insiste insistia repite repetir repetia exige ordena ruega suplica grita gritaba pone ponia quiere"
    " propone recomienda sugiere empena pesado pesada"
)
"""Words for how somebody else asks for something: Eve insists, mi jefe no para de repetir."""
TO_US: Final = _words("me us nos")
