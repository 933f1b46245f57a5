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

SHORT_WORDS: Final = _words(
    "get new old not day one two ten add put pay out see use let ask say set try run buy bid off own way how who why"
    " when may mar apr jun jul aug sep oct nov dec mon tue wed thu fri sat sun big low top end few its but yes job tax"
    " fee vat iva dia mes ano vez ver dar hoy dos mas muy sin fin pon haz ten soy fue era ene abr ago dic api app url"
    " web log tag tip map bar box bus car art act air age bag bed bit red tea sea sky eat fun far fit fix"
)
"""Words of three letters that are in many names: one of them is no half of a name, as Bob is of Bob Stone."""

EXTENSIONS: Final = _words("txt doc docx xls xlsx ppt pptx pdf csv md odt ods json yaml yml html png jpg jpeg zip")
"""What a file's name ends with and people leave out."""

CURRENCIES: Final = _words(
    "eur euro euros usd dollar dollars gbp pound pounds dolar dolares libra libras pesos chf yen"
)

NEGATIONS: Final = _words("not dont never nunca jamas")
NEAR_NEGATIONS: Final = _words("no without sin tampoco avoid avoiding evita evite evites evitar evitando refrain")
"""These deny the verb they stand before; with a thing between, they deny the thing."""
IDIOMS: Final = (
    *(("make", "sure"), ("be", "sure"), ("make", "certain"), ("add", "up"), ("log", "into"), ("log", "in", "to")),
    *((leave, "en", "paz") for leave in ("deja", "deje", "dejes", "dejar", "dejad", "dejen")),
)
"""Words that together ask for what follows, or for nothing."""

BEFORE_NOUNS: Final = ARTICLES | _words(
    "of in by via per with from no number about on de del en por con al nuevo nueva ningun ninguna numero sobre"
    " many more few several some all every each any other cuantos cuantas muchos muchas varios varias todos todas algun"
    " algunos algunas cada otro otra otros otras"
)
"""Behind one of these stands a thing: the messages, of payments; nobody is asked to do it."""
DONE: Final = ("ed", "ado", "ada", "ados", "adas", "ido", "ida", "idos", "idas", "aron", "ieron")
"""What was done already ends like this, and nobody asks for it."""

BEARING: Final = ARTICLES - _words("this that these those") | _words(
    "every each any which what another cada cualquier cualquiera algun alguna ningun ninguna otro otra"
)
"""Right behind one of these stands a thing for certain: the email, every email."""
POINTING: Final = _words("this that these those")
"""Behind these it does at the beginning only: this email is odd, but after that email Ann."""
BIDDING: Final = _words(
    "asked ask told tell wanted want said say allowed ordered instructed meant dicho dije digo pedido pedi pido querido"
    " quise quiero ordenado mandado autorizado"
)
"""Who denies one of these denies what stands behind it: I never asked you to."""

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
FIRST_PERSON: Final = _words("i we")
WE_SAY: Final = _words("digo dije decimos dijimos pido pedi pedimos indico indicamos explico explicamos mando mandamos")
"""Forms of the first person alone: lo que te digo, but neither lo que diga nor lo que mande."""
BEFORE_SAYING: Final = _words("have had ve just already now te os le les ya yo")
"""What may stand between these and what they say, or who says it: what I have told you, lo que te digo."""
OWN: Final = _words("following below siguientes siguiente")
"""The following tasks are in the words themselves."""

DELEGATING: Final = (
    "do|follow|execute|perform|complete|carry|handle|finish|process * action|task|instruction|step|todo|request",
    "do|follow * say|said|ask|asked|tell|told|specified|described|instructed|written|mentioned",
    "haz|sigue|ejecuta|realiza|completa|cumple|atiende|hacer|seguir|realizar * accion|tarea|instruccion|paso|pendiente",
    "haz|sigue|hacer|seguir * dice|pide|indica|pone|diga|explica|manda",
)
"""How people point at a place that tells what to do: one of the first words, then within a few one of the next."""


def _pairs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(pair.split()) for pair in text.split(","))


POLITE: Final = _words(
    "hi hello hey ok okay so and well please now then also sorry hola oye y pues vale por favor ahora entonces bueno"
)
"""How a sentence may begin without being anything yet."""
THEN: Final = _words("and then please but y e luego despues pero afterwards")
"""What goes on from a question to a request: see what I owe and pay it."""
WONDERING: Final = _words(
    "should shall did does has had was were is are am debo deberia deberiamos debemos puedo podemos ha han hemos"
)
ADVISING: Final = _pairs(
    "can i,could i,may i,might i,do i,do we,do you,do they,have i,have you,have we,have they,he de,when did,when does,"
    "when do,when was,when is,when will,se puede,se puedo"
)
"""With one of these begins a question about doing it; can you, could you and would you ask for it."""
ASKING_HOW: Final = _words("what which where why how como que donde cual cuales por")
WHO_KNOWS: Final = _words("who whom whose whether how why quien quienes")
TELLING: Final = _words(
    "tell show explain know wonder learn see check me dime di explicame explica sabes saber mira muestrame ensename"
    " cuentame averigua"
)
CONDITIONS: Final = _words("if when whenever while si cuando mientras")
STATING: Final = _words("i we he she they yo nosotros ellos ellas")
"""Right before a verb: somebody does it, and asks nobody for it."""
OBLIGED_THEN: Final = _pairs("had to,used to,tuve que,tenia que,tuvimos que,forgot to,failed to,refused to")
REMINDING: Final = _words("remind recuerdame recuerdanos")
BEFOREHAND: Final = _words("before until till antes hasta")
TRANSLATING: Final = _words(
    "translate translating translation proofread rephrase paraphrase reword traduce traducir traduceme traduccion"
    " parafrasea reformula"
)
PREPOSITIONS: Final = _words("by via through per por con in en to a")
CONFIRMING: Final = frozenset(
    (
        *("ask me", "check with me", "confirm with me", "let me see", "let me look", "let me check", "let me review"),
        *("let me read", "let me approve", "show me first", "show it to me first", "preguntame", "consultame"),
        *("confirmame", "ensenamelo antes", "ensenamelo primero", "pideme permiso"),
    )
)
"""Who says one of these wants to decide first."""

RETRACTS: Final = _words(
    "don dont stop nevermind mind forget cancel scratch abort not hold dejalo dejala olvidalo olvidala olvida cancela"
    " cancelalo cancelala anulalo anulala hagas mejor falta espera"
)
"""One of these takes back what was said, where nothing but such words stands beside it."""
RETRACTIONS: Final = RETRACTS | _words(
    "actually t do it that this please no wait never on off second thought thoughts sorry ok oh leave just now yet the"
    " anything nothing all of them any more longer after better lo la eso esto nada ya hace pensandolo bien perdon al"
    " final todavia aun ay por favor de momento se"
)
LEFT_OUT: Final = RETRACTIONS | SMALL
"""Behind a verb that is denied these name nothing else: do not send it yet."""
REFERRING: Final = _words(
    "it that them this those these same him her there one yes yeah yep ok okay sure go ahead do again also too another"
    " instead now then and but so si vale claro adelante hazlo hacedlo eso esa ese esos esas mismo misma tambien ello"
    " otra otro ademas ahora entonces pero sigue continua continue proceed"
)
"""Who says one of these may mean what was asked for in the task before."""

EXCEPTING: Final = _words("except excepting excluding excepto exceptuando salvo menos nothing nobody nadie")
EXCEPTIONS: Final = _pairs(
    "but keep,but not,but leave,but never,and keep,other than,instead of,rather than,in lugar,en lugar,en vez,"
    "aparte de,apart from,pero no,pero deja,pero conserva,under no,in no,at no,bajo ningun,bajo ninguna,en ningun"
)
"""What stands behind these is what the user leaves out."""
NO_WAY: Final = _pairs("under no,in no,at no,bajo ningun,bajo ninguna,en ningun,de ninguna,de ningun")
"""These deny what follows, whatever the noun: under no circumstances."""
OWNING: Final = _words("of from de del by")

GENITIVE: Final = _words("of de del")
FROM: Final = _words("of from about by regarding concerning de del desde sobre acerca")
IN: Final = _words("in inside within en dentro")
INTO: Final = _words("to into onto as at for called named titled a al hacia para como llamado llamada llame")
"""What stands between a value and the rest of a sentence: it is taken from there, is there, goes there."""
WITH: Final = _words("with using con usando")
WHAT: Final = _words("what whatever dice dicen diga cuenta contiene hay haya")
"""Before a value: what notes.txt says, lo que dice notas.txt."""
STANDING: Final = _words(
    "is are was were s stands stand appears says say written listed mentioned contained hay haya habia esta"
    " estan este dice dicen diga pone ponen aparece aparecen figura figuran viene vienen escrito escrita"
)
"""Before "in": what is in it, lo que pone en."""
READING: Final = _words(
    "read reread summarize summarise translate explain show display review check examine inspect look search find"
    " see compare lee leer leed resume resumir resumid traduce traducir explica explicar muestra mostrar ensena"
    " ensenar revisa revisar mira mirar busca buscar encuentra consultar examina analiza analizar"
    " compara comparar"
)
"""Verbs that take something in and leave it as it is."""
HELPING: Final = _words("make making do have take give haz hacer haced haga hagas dar echa echar")
"""Verbs that say nothing by themselves: make a summary, take a look, haz una búsqueda."""
MAKING: Final = _words("create creating generate draft crea crear genera generar")
CHANGING: Final = _words(
    "edit change modify update replace fix correct overwrite rewrite rename clear empty delete remove erase edita"
    " cambia modifica actualiza reemplaza sustituye corrige sobrescribe reescribe renombra vacia borra elimina quita"
)
"""Verbs that do something to what stands behind "of": change the title of."""
ADDING: Final = _words("add append insert anade agrega anexa inserta")
BACK_TO: Final = _words("it them him her there el ella ellos ellas ello")
THEM: Final = _words("them him her")
HERE: Final = _words("there end bottom top ahi alli final principio")
SAYING: Final = _words("saying says say containing reading diga digan ponga pongan diciendo")
DEICTIC: Final = _words("this these following below esto este esta estos estas siguiente siguientes")
"""Who says one of these and names nothing points at what follows."""
SPANS: Final = RELATIVE_DAYS | _words("morning afternoon evening quarter time tarde noche trimestre vez")
"""This week points at nothing that is said."""
OWNERS: Final = _words("my our your mi mis tu tus nuestro nuestra nuestros nuestras")
RENDERING: Final = _words(
    "summarize summarise summarized translate explain proofread rephrase paraphrase reword interpret analyze analyse"
    " classify fix correct tl tldr summary translation resumen traduccion resume resumeme resumir resumidme"
    " traduce traduceme traducir explica"
    " explicame explicar interpreta analiza clasifica corrige corrigeme parafrasea reformula"
)
"""Words that want something done with a text, and not what the text says."""
LOOKING: Final = _words("read review check look lee leeme revisa revisame mira")
INQUIRING: Final = _words("what who is does do which que quien es cual como significa")
GETTING: Final = _words("got received recibi recibido")
CONVEYED: Final = _words(
    "sent wrote writes says said forwarded told tells texted emailed messaged asks asked mails mailed mandado mando"
    " enviado envio envia manda escribio escrito escribe dijo dicho dice pide pidio pedido llego llegado llega reenvio"
    " reenviado pasado"
)
"""What somebody did who sent a text."""
TO_US: Final = _words("me us nos")
