"""Vocabulary of tool names: verbs and their effects, things, and the phrases users have for both.

It contains no tools. A verb that is not listed has no meaning, and a tool without a known meaning counts as a write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from phylactery_riskgate.domain.model import Effect, Risk

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MARKS = re.compile(r"[^A-Za-z0-9]+")
LINKING: Final = re.compile(
    r"by|for|from|to|in|into|with|of|on|at|via|using|as|and|or|if|that|which|so|until|after|before|within|between|about"
)
"""Words that begin the manner part of a name or sentence and end its object."""
_TOO_SHORT: Final = 3
MAX_WORDS: Final = 40
Said = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of tool names: its effect and the forms in which users ask for it."""

    effect: Effect
    risk: Risk
    en: Said
    es: Said


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list written as one text."""
    return frozenset(text.split())


def _rows(text: str) -> Iterator[tuple[list[str], Said, Said]]:
    """Read lines of names | English | Spanish; commas separate phrases, an indented line continues the previous."""
    for line in text.strip().replace("\n ", " ").splitlines():
        names, english, spanish = line.split("|")
        yield names.split(), _said(english), _said(spanish)


def _said(text: str) -> Said:
    return tuple(one.strip() for one in text.split(","))


def _verbs(effect: Effect, risk: Risk, text: str) -> dict[str, Verb]:
    return {name: Verb(effect, risk, en, es) for names, en, es in _rows(text) for name in names}


_READING: Final = """
get fetch retrieve | get, fetch, give me, tell me, what is, what are
    | dame, dime, obtén, obtener, consigue, trae, cuál es, cuáles son
list enumerate | list, show me, which | lista, listar, enumera, muestra, muéstrame, qué
search find query lookup locate browse | search, find, look for, look up
    | busca, buscar, búscame, encuentra, encontrar, localiza
read view see show preview | read, show me, open, look at | lee, leer, léeme, muestra, muéstrame, enséñame, abre
check inspect | check, inspect, look whether | comprueba, comprobar, revisa, revisar, mira, verifica
count | count, how many | cuenta, contar, cuántos, cuántas
describe explain summarize summarise | describe, explain, summarize | describe, explica, resume, resúmeme
compare diff | compare | compara, comparar
calculate compute estimate | calculate, work out, how much | calcula, calcular, cuánto
recall | recall, what do you remember | qué recuerdas
"""
"""A closed list: only a name that begins with one of these can be a read. Verbs that as often change, send or run
something are left out on purpose: open, load, return, print, test, verify, validate, convert, download."""

_CHANGING: Final = """
create make generate new build | create, make, set up | crea, crear, crees, haz, hacer, hagas, genera, prepara
add append attach insert include | add, append, include, put | añade, agrega, incluye, pon, poner, pongas, mete
write save store put note log record
    | write, save, store, put, note down, record | escribe, guarda, apunta, anota, registra, pon
update edit modify change set adjust patch configure replace
    | update, change, edit, set, modify | actualiza, cambia, edita, modifica, ajusta, pon, poner, pongas
upgrade | upgrade, update | mejora, actualiza, sube de categoría
downgrade | downgrade | baja de categoría, degrada
rename | rename, change the name of | renombra, cambia el nombre
move relocate | move | mueve, mover, pasa, lleva
copy duplicate clone fork | copy, duplicate, clone | copia, duplica, clona
scale resize | scale, resize | escala, escalar, redimensiona
schedule plan arrange | schedule, plan, arrange, set up | programa, planifica, agenda, convoca, organiza
reschedule postpone | reschedule, postpone, move, change | reprograma, aplaza, pospone, cambia, mueve
reserve book hold | book, reserve | reserva, reserves
remind | remind me | recuérdame, avísame
remember memorize | remember | recuerda, apunta, anota
mark flag tag label star pin | mark, flag, label, tag, pin | marca, etiqueta, señala, fija
react like upvote | react, like | reacciona, dale me gusta
rate review | rate, review | valora, puntúa, reseña
comment | comment, add * comment | comenta, pon * comentario
archive | archive | archiva
unarchive restore recover revert undo rollback
    | restore, recover, bring back, undo, roll back | restaura, recupera, deshaz, revierte
close resolve complete | close, resolve, complete | cierra, cierre, resuelve, completa
reopen | reopen, open again | reabre, vuelve a abrir
open | open | abre, abrir
lock | lock | bloquea, cierra con llave
unlock | unlock | desbloquea, abre
enable activate | enable, turn on, activate, switch on | activa, enciende, habilita
start resume launch | start, begin, resume, launch | inicia, empieza, arranca, reanuda, lanza
play | play | pon, reproduce, toca
subscribe follow watch | subscribe, follow | suscribe, suscríbeme, sigue
unsubscribe unfollow | unsubscribe, unfollow | cancela la suscripción, date de baja, deja de seguir
disable deactivate mute | disable, turn off, deactivate, mute | desactiva, apaga, silencia
stop pause | stop, pause | detén, detener, pausa
assign allocate | assign, give | asigna, da
unassign | unassign, take * off | desasigna, quita
upload import | upload, import | sube, importa
download | download | descarga, bájame
export | export | exporta
convert translate | convert, translate | convierte, traduce
sync synchronize refresh | sync, refresh | sincroniza, actualiza, refresca
install | install | instala
register enroll signup | register, sign up, enroll | registra, inscribe, apunta
join | join | únete, únenos, apúntame
leave quit | leave, quit | sal de, abandona, deja
accept | accept | acepta
decline | decline, turn down | rechaza, declina
confirm verify validate | confirm, verify | confirma, verifica
return exchange | return, send back, exchange | devuelve, cambia
apply | apply | aplica
select choose | select, choose, pick | elige, selecciona, escoge
fill enter type | fill in, enter, type | rellena, introduce, escribe
click press | click, press | pulsa, haz clic
request | request, ask for | solicita, pide
renew extend | renew, extend | renueva, amplía, prorroga
increase raise | increase, raise | aumenta, sube
decrease lower reduce | decrease, lower, reduce | reduce, baja
turn switch toggle | turn, switch | enciende, apaga, pon
connect | connect, link | conecta, vincula
disconnect | disconnect, unlink | desconecta, desvincula
transition | move, change | mueve, cambia, pasa
dismiss | dismiss | descarta
login signin authenticate | log in, sign in | inicia sesión, entra
logout signout | log out, sign out | cierra sesión, sal
vote | vote | vota
draft | draft, write | redacta, escribe
print | print | imprime
rotate | rotate | rota
bookmark favorite | bookmark, save | guarda, marca
"""
_FINAL: Final = """
send dispatch deliver | send | envía, enviar, envíes, manda, hazle llegar
mail email | send, write, email | envía, enviar, envíes, manda, escribe
message text dm | message, text, send, write | envía, enviar, envíes, manda, escribe
forward | forward | reenvía, reenviar, reenvíes
reply respond answer rsvp | reply, answer, respond | responde, contesta
notify alert | notify, inform, tell, alert | notifica, avisa, informa
delete remove erase destroy purge drop clear wipe discard trash unlink truncate
    | delete, remove, get rid of, erase | borra, elimina, quita, bórrame
uninstall | uninstall, remove | desinstala, quita
overwrite | overwrite | sobrescribe
cancel revoke void | cancel, call off, revoke | cancela, anula, revoca
pay settle | pay | paga, pagues, abona
transfer wire remit | transfer, wire, send | transfiere, transferir, envía, pasa
charge bill debit | charge, bill | cobra, carga
refund reimburse | refund, give back | reembolsa, devuelve
donate | donate | dona
buy purchase order checkout | buy, order, purchase | compra, pide, pedir, encarga
sell trade | sell | vende
invest | invest | invierte
post publish tweet broadcast announce | post, publish | publica, publiques, anuncia
submit | submit, hand in | presenta, entrega
place | place, make | haz, realiza
ship | ship, send | envía, manda
retweet | retweet, repost | retuitea, comparte
share | share, give access to | comparte, da acceso
invite | invite | invita
grant allow authorize | grant, allow | concede, permite, autoriza
call dial | call, ring | llama, llámame
run execute invoke eval exec trigger | run, execute | ejecuta, lanza
deploy release | deploy, release | despliega, desplegar, publica
merge rebase | merge | fusiona, fusionar
push commit | push, commit | sube, confirma
approve | approve | aprueba
reject deny | reject, deny | rechaza, deniega
sign | sign | firma
ban block suspend | ban, block, suspend | bloquea, suspende
kick evict | kick out, remove | expulsa, echa
reset | reset | restablece, reinicia
shutdown kill terminate | shut down, kill, terminate | apaga, termina
withdraw | withdraw, take out | retira, saca
deposit fund | deposit, pay in, fund | ingresa, deposita
"""
_RISKY: Final = """
restart reboot | restart, reboot | reinicia, reiniciar
"""
VERBS: Final = {
    **_verbs("read", "low", _READING),
    **_verbs("write", "medium", _CHANGING),
    **_verbs("write", "high", _RISKY),
    **_verbs("irreversible", "high", _FINAL),
}

OFTEN_NOUNS: Final = word_set(
    """address alarm alert answer apply archive backup bill block book bookmark branch build call change charge
    checkout clean clear clone close comment commit complete connect copy debit decrease deposit dm download draft
    duplicate email empty exchange export favorite flag follow fork forward function fund hold import include
    increase invite label launch leave like link lock log login logout mail mark message new note open order patch
    pin place plan play post press print purchase push raise rate record reduce refund release reminder renew
    reply report request reserve resume review run scale schedule set share ship sign signin signout star start
    stop store switch tag text trade transfer transition trash trigger turn tweet type update void vote watch"""
)
"""Verbs that are as often nouns: as the object of a read (get_order, list the messages) they do not mean a change."""
CHANGERS: Final = (
    frozenset(name for name, verb in VERBS.items() if verb.effect != "read")
    | word_set(
        """rid exfiltrate leak steal nuke alter mutate migrate encrypt decrypt detach disconnect unset spawn inject
    override bypass escalate impersonate elevate flush dismiss borrow lend navigate drag unpublish prune shred
    scrub cleanup whitelist blacklist rewrite burn swap hire reveal transmit relay redirect swipe"""
    )
) - (OFTEN_NOUNS | {"return", "allow"})
"""Verbs of change that are hardly ever nouns: the name of a read has none of them."""

UNIX: Final = {
    "ls": "list file", "cat": "read file", "head": "read file", "tail": "read file", "grep": "search file",
    "tree": "list folder", "du": "show file", "df": "show disk", "stat": "show file", "wc": "count file",
    "pwd": "show directory", "ps": "list process", "whoami": "show user", "rm": "delete file",
    "rmdir": "delete directory", "mv": "move file", "cp": "copy file", "mkdir": "create directory",
    "touch": "create file", "chmod": "change permission", "chown": "change owner", "ln": "create link",
    "echo": "write text", "sed": "edit file", "cd": "change directory", "curl": "run command", "wget": "download file",
    "bash": "run command", "sh": "run command", "shell": "run command", "sudo": "run command", "ssh": "run command",
    "git_log": "list commit", "git_status": "show status", "git_add": "add file", "git_commit": "create commit",
    "git_checkout": "change branch", "git_init": "create repository", "git_clone": "copy repository",
    "tar": "create archive", "zip": "create archive", "unzip": "create file", "pkill": "kill process",
}  # fmt: skip
"""Commands used as tool names, and their meaning in words."""

_THINGS: Final = """
email mail | email, mail, message | correo, email, mail, mensaje
message dm direct_message | message | mensaje
thread conversation chat | thread, conversation, chat | hilo, conversación, chat
notification alert | notification, alert | notificación, aviso, alerta
reaction | reaction | reacción
file | file | archivo, fichero
folder directory | folder, directory | carpeta, directorio
document doc | document | documento
event | event, meeting, appointment | evento, reunión, cita
meeting appointment | meeting, appointment | reunión, cita
calendar | calendar | calendario, agenda
contact | contact | contacto
user | user | usuario, usuaria
owner | owner | propietario, propietaria
money fund | money | dinero
payment | payment | pago
transaction | transaction, payment | transacción, movimiento, pago
transfer | transfer | transferencia
invoice | invoice | factura
bill | bill | factura, recibo
expense | expense | gasto
budget | budget | presupuesto
account | account | cuenta
card | card | tarjeta
balance | balance | saldo
beneficiary payee | beneficiary, payee | beneficiario, beneficiaria
supplier vendor | supplier | proveedor
password | password | contraseña
token | token | token
permission | permission | permiso
role | role | rol
channel | channel | canal
status | status | estado
hotel | hotel | hotel
restaurant | restaurant | restaurante
flight | flight | vuelo
seat | seat | asiento
trip travel | trip | viaje
passenger | passenger | pasajero, pasajera
baggage luggage | baggage, luggage | equipaje
insurance | insurance | seguro
room | room | habitación, sala
car | car | coche, carro
taxi ride | taxi, ride | taxi, viaje
reservation booking | reservation, booking | reserva
review | review | reseña, opinión
order | order | pedido
cart basket | cart, basket | carrito, cesta
shipment package delivery | shipment, package, delivery | envío, paquete
return | return | devolución
refund | refund | reembolso
coupon discount | coupon, discount | cupón, descuento
product item | product, item | producto, artículo
stock inventory | stock, inventory | existencias, inventario
customer client | customer, client | cliente
ticket | ticket, issue | tique, incidencia, entrada
issue | issue, ticket | incidencia, tique, issue
pull_request pr merge_request | pull request, PR | pull request, PR
commit | commit | commit
milestone | milestone | hito
task todo | task, todo | tarea
reminder | reminder | recordatorio
alarm | alarm | alarma
note | note | nota
list | list | lista
page webpage | page | página
website site | website, site | sitio, web
link url | link | enlace
photo image picture | photo, image, picture | foto, imagen
video | video | vídeo
song track | song, track | canción
playlist | playlist | lista de reproducción
report | report | informe
record | record | registro
log | log | registro, log
row | row, line | fila, línea
column | column | columna
cell | cell | celda
table | table | tabla
database db | database | base de datos
query sql | query | consulta
command | command | comando, orden
script | script | script
process | process | proceso
comment | comment | comentario
post tweet | post | publicación
story | story | historia
branch | branch | rama
repository repo | repository, repo | repositorio
version release | version, release | versión
tag label | tag, label | etiqueta
deployment | deployment | despliegue
service | service | servicio
server instance | server, instance | servidor, instancia
container | container | contenedor
pod | pod | pod
cluster | cluster | clúster
replica | replica | réplica
environment | environment | entorno
job | job | trabajo, tarea
workflow pipeline | workflow, pipeline | flujo, pipeline
backup snapshot | backup, snapshot | copia de seguridad, instantánea
incident | incident | incidente
config configuration | configuration, config | configuración
setting preference | setting, preference | ajuste, preferencia
value | value | valor
key | key | clave
variable | variable | variable
property field | property, field | propiedad, campo
weather | weather, forecast | tiempo, previsión
address | address | dirección, domicilio
phone | phone, phone number | teléfono
number | number | número
profile | profile | perfil
group | group | grupo
member | member | miembro
people person | people, person | persona, gente
friend | friend | amigo, amiga
employee | employee | empleado, empleada
team | team | equipo
role | role | rol
invitation invite | invitation | invitación
participant attendee guest | participant, guest | participante, asistente, invitado
attachment | attachment | adjunto
subscription | subscription | suscripción
plan | plan | plan
project | project | proyecto
board | board | tablero
block | block | bloque
spreadsheet sheet | spreadsheet, sheet | hoja de cálculo, hoja
slide presentation | slide, presentation | diapositiva, presentación
article | article | artículo
form | form | formulario
survey | survey | encuesta
question | question | pregunta
request | request | solicitud, petición
price | price | precio
rating | rating | valoración
secret | secret | secreto
text | text | texto
code | code | código
device | device | dispositivo
light lamp | light, lamp | luz, lámpara
door | door | puerta
info information detail data | info, information, details | información, datos, detalles
iban | iban, account number | iban, número de cuenta
day date | day, date | día, fecha
time | time | hora
name | name | nombre
title | title | título
entity | entity | entidad
memory | memory | recuerdo, memoria
course | course | curso
prescription | prescription | receta
disk | disk | disco
archive | archive | archivo comprimido, zip
button | button | botón
"""
THINGS: Final = {name: (en, es) for names, en, es in _rows(_THINGS) for name in names}
"""Objects of tools, and their English and Spanish names; _ joins two words."""

_PAYING: Final = (("pay", "transfer", "make * payment", "make * transfer"), ("paga", "transfiere", "haz * pago"))
_BUYING: Final = (("buy", "purchase"), ("compra", "encarga"))
_BOOKABLE: Final = ("flight", "hotel", "restaurant", "room", "seat", "ticket", "trip", "car")
_BOOKING: Final[tuple[Said, Said]] = (
    ("reserve", *(f"book * {name}" for thing in _BOOKABLE for name in THINGS[thing][0])),
    tuple(f"reserva * {name}" for thing in _BOOKABLE for name in THINGS[thing][1]),
)
IDIOMS: Final[dict[tuple[str, str], tuple[Said, Said]]] = {
    **{
        (verb, thing): _PAYING
        for verb in ("send", "make", "create", "transfer")
        for thing in ("money", "payment", "transfer")
    },
    **{
        (verb, thing): _BUYING
        for verb in ("add", "put", "update", "checkout", "submit")
        for thing in ("cart", "basket")
    },
    **{(verb, "order"): _BUYING for verb in ("create", "submit", "confirm", "make", "place")},
    **{
        (verb, thing): _BOOKING
        for verb in ("book", "reserve", "create", "make", "confirm", "hold", "select", "pay", "add")
        for thing in ("booking", "reservation", "seat")
    },
}
"""Phrases for combinations of verb and thing that follow from neither, and for goals of which a tool is a step.

Buying is adding to the cart and checking out; booking is choosing a seat, reserving and confirming."""
GOALS: Final = frozenset(one for said in (*_BUYING, *_BOOKING) for one in said)
"""Phrases that several tools may claim, because each is a step of the same goal."""


def words_of(name: str) -> tuple[str, ...]:
    """Split a name or a sentence into lower-case words: send_email, sendEmail and "Send email" alike."""
    pieces = (piece for part in _MARKS.split(name) for piece in _CAMEL.split(part))
    return tuple(piece.lower() for piece in pieces if piece)[:MAX_WORDS]


def tool_words(name: str) -> tuple[str, ...]:
    """Return the words of a tool's name; a command at its end is expanded: fs_mkdir gives "create directory"."""
    words = words_of(name)
    for count in (2, 1):
        command = "_".join(words[-count:])
        if command in UNIX:
            return (*words[:-count], *UNIX[command].split())
    return words


def singular(word: str) -> str:
    """Return an English word without the s of the plural or the third person."""
    if word.endswith("ies") and len(word) > _TOO_SHORT + 1:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    plural = word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > _TOO_SHORT
    return word[:-1] if plural else word


def verb_of(words: tuple[str, ...]) -> tuple[int, Verb] | None:
    """Return the first verb of a name and its position."""
    for place, word in enumerate(words):
        for form in (word, singular(word)):
            if form in VERBS and not (form in THINGS and thing_at(words, place)):
                return place, VERBS[form]
    return None


def thing_at(words: tuple[str, ...], place: int) -> str:
    """Return the two-word thing at a position, such as pull_request, or an empty string."""
    both = "_".join((words[place], singular(words[place + 1]))) if place + 1 < len(words) else ""
    return both if both in THINGS else ""


def thing_named(thing: tuple[str, ...]) -> str:
    """Return the key of a thing: its last two words if known, or its last word, the head noun."""
    two = "_".join(thing[-2:])
    return two if two in THINGS else thing[-1] if thing and thing[-1] in THINGS else ""


def thing_of(words: tuple[str, ...], verb: int) -> tuple[str, ...]:
    """Return the object of a name's verb: the words after it, up to a linking word, or the words before it."""
    after = list(words[verb + 1 :])
    while after and LINKING.fullmatch(after[0]):
        del after[0]
    for place, word in enumerate(after):
        if LINKING.fullmatch(word):
            after = after[:place]
            break
    return tuple(after) or words[:verb]
