"""What names of tools mean: verbs with what they do to the world, things, and how both are said when asking.

It knows no tool: these are the words that names of tools are made of, with the words of people beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from phylactery_riskgate.domain.model import Effect, Risk

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MARKS = re.compile(r"[^A-Za-z0-9]+")
_LINKING: Final = re.compile(r"by|for|from|to|in|into|with|of|on|at|via|using|as|and|or|if")
"""Words after which a tool's name says how, and no longer what."""
_TOO_SHORT: Final = 3
MAX_WORDS: Final = 40
Said = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of tools: what it does, and the forms in which people ask for it."""

    effect: Effect
    risk: Risk
    en: Said
    es: Said


def _rows(text: str) -> Iterator[tuple[list[str], Said, Said]]:
    """Reads lines of names | English | Spanish; commas stand between phrases, and an indented line goes on."""
    for line in text.strip().replace("\n ", " ").splitlines():
        names, english, spanish = line.split("|")
        yield names.split(), _said(english), _said(spanish)


def _said(text: str) -> Said:
    return tuple(one.strip() for one in text.split(","))


def _verbs(effect: Effect, risk: Risk, text: str) -> dict[str, Verb]:
    return {name: Verb(effect, risk, en, es) for names, en, es in _rows(text) for name in names}


_READING: Final = """
get fetch retrieve load obtain return
    | get, fetch, give me, tell me, what is, what are | dame, dime, obtén, obtener, consigue, trae, cuál es, cuáles son
list enumerate | list, show me, which | lista, listar, enumera, muestra, muéstrame, qué
search find query lookup locate | search, find, look for, look up
    | busca, buscar, búscame, encuentra, encontrar, localiza
read view open show display print cat | read, show me, open, look at
    | lee, leer, léeme, muestra, muéstrame, enséñame, abre
check verify inspect validate test | check, verify, look whether | comprueba, comprobar, revisa, revisar, mira, verifica
count | count, how many | cuenta, contar, cuántos, cuántas
describe explain summarize summarise | describe, explain, summarize | describe, explica, resume, resúmeme
compare diff | compare | compara, comparar
calculate compute estimate convert | calculate, work out, how much | calcula, calcular, cuánto
download export | download, export | descarga, descargar, bájame, exporta
recall | recall, what do you remember | qué recuerdas
"""
_CHANGING: Final = """
create make generate new build | create, make, set up | crea, crear, crees, haz, hacer, hagas, genera, prepara
add append attach insert include | add, append, include, put | añade, agrega, incluye, pon, poner, pongas, mete
write save store put note | write, save, store, put, note down | escribe, guarda, apunta, anota
update edit modify change set adjust patch | update, change, edit, set | actualiza, cambia, edita, modifica, pon
rename | rename, change the name of | renombra, cambia el nombre
move relocate | move | mueve, mover, pasa, lleva
copy duplicate clone | copy, duplicate | copia, duplica
schedule plan arrange | schedule, plan, arrange, set up | programa, planifica, agenda, convoca, organiza
reschedule postpone | reschedule, postpone, move, change | reprograma, aplaza, pospone, cambia, mueve
reserve book | book, reserve | reserva, reserves
remind | remind me | recuérdame, avísame
remember | remember | recuerda, apunta, anota
mark flag tag label star | mark, flag, label | marca, etiqueta, señala
archive | archive | archiva
enable activate | enable, turn on, activate, switch on | activa, enciende, habilita
start | start, begin | inicia, empieza, arranca
subscribe | subscribe | suscribe, suscríbeme
disable deactivate mute | disable, turn off, deactivate, mute | desactiva, apaga, silencia
stop pause | stop, pause | para, detén, pausa
assign | assign, give | asigna
upload import | upload, import | sube, importa
join | join | únete, únenos, apúntame
accept | accept | acepta
decline | decline, turn down | rechaza, declina
confirm | confirm | confirma
"""
_FINAL: Final = """
send dispatch | send | envía, enviar, envíes, manda, hazle llegar
mail email | send, write, email | envía, enviar, envíes, manda, escribe
message text | message, text, send, write | envía, enviar, envíes, manda, escribe
forward | forward | reenvía, reenviar, reenvíes
reply respond answer rsvp | reply, answer, respond | responde, contesta
notify | notify, inform, tell | notifica, avisa, informa
delete remove erase destroy purge drop clear wipe discard
    | delete, remove, get rid of, erase | borra, elimina, quita, bórrame
cancel revoke | cancel, call off | cancela, anula
pay | pay | paga, pagues, abona
transfer wire | transfer, wire, send | transfiere, transferir, envía
refund | refund, give back | reembolsa, devuelve
buy purchase order checkout | buy, order, purchase | compra, pide, pedir, encarga
sell trade | sell | vende
post publish tweet broadcast announce | post, publish | publica, publiques, anuncia
submit | submit, hand in | presenta, entrega
share | share, give access to | comparte, da acceso
invite | invite | invita
grant allow | grant, allow | concede, permite
call dial | call, ring | llama, llámame
run execute invoke eval | run, execute | ejecuta, lanza
deploy release | deploy, release | despliega, publica
merge | merge | fusiona
push commit | push, commit | sube
approve | approve | aprueba
reject | reject | rechaza
sign | sign | firma
ban block suspend | ban, block, suspend | bloquea, suspende
kick | kick out, remove | expulsa, echa
reset | reset | restablece, reinicia
restart reboot | restart, reboot | reinicia
shutdown kill terminate | shut down, kill, terminate | apaga, termina
withdraw | withdraw, take out | retira, saca
deposit | deposit, pay in | ingresa, deposita
"""
VERBS: Final = {
    **_verbs("read", "low", _READING),
    **_verbs("write", "medium", _CHANGING),
    **_verbs("irreversible", "high", _FINAL),
}

_THINGS: Final = """
email mail | email, mail, message | correo, email, mail, mensaje
message | message | mensaje
file | file | archivo, fichero
folder directory | folder, directory | carpeta, directorio
document doc | document | documento
event | event, meeting, appointment | evento, reunión, cita
meeting appointment | meeting, appointment | reunión, cita
calendar | calendar | calendario, agenda
contact | contact | contacto
user | user | usuario, usuaria
money fund | money | dinero
payment | payment | pago
transaction | transaction, payment | transacción, movimiento, pago
transfer | transfer | transferencia
invoice | invoice | factura
bill | bill | factura, recibo
account | account | cuenta
balance | balance | saldo
password | password | contraseña
channel | channel | canal
hotel | hotel | hotel
restaurant | restaurant | restaurante
flight | flight | vuelo
car | car | coche, carro
taxi | taxi | taxi
reservation booking | reservation, booking | reserva
review | review | reseña, opinión
order | order | pedido
product item | product, item | producto, artículo
customer client | customer, client | cliente
ticket issue | ticket, issue | incidencia, tique
task todo | task, todo | tarea
note | note | nota
reminder | reminder | recordatorio
list | list | lista
page webpage | page | página
website site | website, site | sitio, web
link url | link | enlace
photo image picture | photo, image, picture | foto, imagen
report | report | informe
record | record | registro
row | row, line | fila, línea
table | table | tabla
comment | comment | comentario
post | post | publicación
branch | branch | rama
repository repo | repository, repo | repositorio
weather | weather, forecast | tiempo, previsión
address | address | dirección, domicilio
phone | phone, phone number | teléfono
profile | profile | perfil
group | group | grupo
member | member | miembro
invitation invite | invitation | invitación
participant attendee guest | participant, guest | participante, asistente, invitado
attachment | attachment | adjunto
subscription | subscription | suscripción
setting preference | setting, preference | ajuste, preferencia
project | project | proyecto
team | team | equipo
spreadsheet sheet | spreadsheet, sheet | hoja de cálculo, hoja
article | article | artículo
price | price | precio
rating | rating | valoración
secret | secret | secreto
alarm | alarm | alarma
text | text | texto
code | code | código
info information detail data | info, information, details | información, datos, detalles
iban | iban, account number | iban, número de cuenta
day date | day, date | día, fecha
time | time | hora
name | name | nombre
"""
_PAYING: Final = (("pay", "transfer", "make * payment", "make * transfer"), ("paga", "transfiere", "haz * pago"))


THINGS: Final = {name: (en, es) for names, en, es in _rows(_THINGS) for name in names}
"""What tools act upon, and what people call it in English and Spanish."""


IDIOMS: Final[dict[tuple[str, str], tuple[Said, Said]]] = {
    (verb, thing): _PAYING
    for verb in ("send", "make", "create", "transfer")
    for thing in ("money", "payment", "transfer")
}
"""What people say for a verb and a thing that is in neither."""


def words_of(name: str) -> tuple[str, ...]:
    """Cuts a name or a sentence into lower-case words: send_email, sendEmail and "Send email" alike."""
    pieces = (piece for part in _MARKS.split(name) for piece in _CAMEL.split(part))
    return tuple(piece.lower() for piece in pieces if piece)[:MAX_WORDS]


def singular(word: str) -> str:
    """Answers an English word without the s of its plural or third person."""
    if word.endswith("ies") and len(word) > _TOO_SHORT + 1:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _TOO_SHORT
    return word[:-1] if plural else word


def verb_of(words: tuple[str, ...]) -> tuple[int, Verb] | None:
    """Finds the first verb of a name and where it stands."""
    for place, word in enumerate(words):
        for form in (word, singular(word)):
            if form in VERBS:
                return place, VERBS[form]
    return None


def thing_of(words: tuple[str, ...], verb: int) -> tuple[str, ...]:
    """Answers what a name says its verb acts upon: what follows it, up to a linking word, or what stands before it."""
    after = list(words[verb + 1 :])
    while after and _LINKING.fullmatch(after[0]):
        del after[0]
    for place, word in enumerate(after):
        if _LINKING.fullmatch(word):
            after = after[:place]
            break
    return tuple(after) or words[:verb]
