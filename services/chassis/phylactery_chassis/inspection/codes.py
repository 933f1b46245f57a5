"""PINs, card and door codes, and one-time codes: digits next to a word that names them."""

from __future__ import annotations

from collections.abc import Iterator

from phylactery_chassis.inspection.candidates import Candidate, Sight, digits_of
from phylactery_chassis.inspection.expressions import Match, expression
from phylactery_chassis.inspection.kinds import Confidence, FindingKind

OTHER_THINGS = (
    r"product(?:os?|s)?|reservas?|reservacion(?:es)?|bookings?|reservations?|cursos?|courses?|clas(?:s(?:es)?|es?)|asignaturas?"
    r"|materias?|pedidos?|orders?|compras?|purchases?|envios?|shipments?|shipping|paquetes?|parcels?"
    r"|packages?|seguimiento"
    r"|rastreo|tracking|guias?|articulos?|items?|clientes?|customers?|clients?|proveedor(?:es)?|suppliers?|tramites?"
    r"|expedientes?|vuelos?|flights?|billetes?|boletos?|tickets?|facturas?|invoices?|cupon(?:es)?|coupons?|vouchers?"
    r"|descuentos?|discounts?|promo(?:s|cion|ciones|cional|tional)?|errores|error|errors|zip"
    r"|postal(?:es)?|country|pais(?:es)?"
    r"|area|barras|bar|qr|exit|status|source|fuente|catastral|elector|cotizacion|quote|inventario|inventory|sucursal"
    r"|branch|plantel|escuela|colegio|school|alumnos?|students?|empleados?|employees?|proyectos?"
    r"|projects?|tareas?|tasks?"
    r"|lineas?|color(?:es)?|colou?rs?|talla|dress|sku|modelo|model|exito|success|donantes?|municipio|estado|state|iata"
    r"|primari[ao]|primary|foranea|foreign|embarque|boarding|swift|bic|fiscal|sat|arancelari[oa]|cie|diagnostico|diagnosis"
)
"""Things whose key or code is a name that anybody may read."""
_WHAT = (
    r"security|verification|unlock|alarm|door|gate|access|entry|safe|lock|2fa|mfa|two-factor|one-time"
    r"|login|log-in|sign-in"
    r"|confirmation|authentication|auth|sms|recovery|phone|ipad|iphone|tablet|laptop|luggage|locker|keypad|garage"
    r"|activation|card|bank|banking|atm|sim|backup|whatsapp|text|otp|totp|wi-?fi|building|house|front door|home"
)
_FOR_WHAT = (
    r"(?:card|bank(?: account)?|account|atm|door|gate|alarm|safe|locker|phone|sim|wi-?fi|building|garage"
    r"|house|front door"
    r"|flat|apartment|padlock|suitcase|laptop|tablet|iphone|ipad)"
)
_CHANNELS = (
    r"(?:sms|text(?: message)?|whatsapp|telegram|signal|authenticator|google authenticator|e-?mail|phone|mensaje"
    r"(?: de texto)?|correo(?: electronico)?|telefono|movil)"
)
_ARRIVED = (
    r"(?:(?:that )?(?:i|they|you|he|she|we|it|my bank|the bank) (?:just )?(?:got|get|received|sent|texted|gave|emailed)"
    r"(?: me| us| you)?|(?:sent|texted|emailed|given)(?: to)? (?:me|us|you)"
    r"|que (?:me|te|le|nos) (?:acaban? de )?(?:llegar|llego|llega|ha llegado|enviar|enviaron|enviado"
    r"|han enviado|envie|envio"
    r"|mande|mando|mandar|mandaron|han mandado|dieron|dio|di|dar|paso|pase|pasaron|salio|sale|aparece))"
)
_DE_QUE = (
    r"de (?:(?:la|el|un|mi|tu|su|las|los|mis|tus|nuestra) )?"
    r"(?:seguridad|verificacion|desbloqueo|acceso|alarma|puerta|entrada|portal|garaje"
    r"|caja(?: fuerte)?|confirmacion|autenticacion|recuperacion|solo uso|firma|sms|pin"
    r"|activacion|tarjetas?(?: de (?:credito|debito))?"
    r"|banco|cajero|cuenta|sim|whatsapp|telegram|respaldo|emergencia|bloqueo|wi-?fi|dos pasos|casa"
    r"|edificio|candado|caja)"
    r"|del? (?:(?:mi|la) )?(?:portal|garaje|edificio|candado|telefono|movil|sms|ipad|iphone|tablet|portatil"
    r"|ordenador|maleta|taquilla|banco|cajero|whatsapp)"
)
_TO_PROVE = (
    r"(?:to|para) (?:authori[sz]e|confirm|approve|sign|verify|log|enter|unlock|open|autorizar|confirmar|aprobar|firmar"
    r"|verificar|iniciar|entrar|acceder|abrir|desbloquear)"
)
_CARDS = r"\bcvv2?\b|\bcvc2?\b|\bcv2\b|\bsecurity code\b|\bcodigo de seguridad\b"
_PINS = r"\bpuk\b|\bpin(?:[ _-]?(?:code|number))?\b|_pin\b|\botp\b|\bpasscode\b"
_CODES = (
    rf"\b(?:{_WHAT})(?: unlock)? codes?\b|\bone[- ]time (?:password|pin)\b|\b(?:codigos?|clave) (?:{_DE_QUE})\b"
    rf"|\bcodes? (?:for|of|to|on) (?:(?:my|the|your|our|his|her|their) )?{_FOR_WHAT}\b"
    rf"|\b(?:codes?|codigos?) (?:{_ARRIVED} ?)?(?:(?:by|via|through|over|on|from|in|por|en|de|desde) "
    r"(?:(?:an?|the|my|un|el|la|mi) )?"
    rf"{_CHANNELS}\b)|\b(?:codes?|codigos?) {_ARRIVED}\b"
    r"|\bcodigos? sms\b|\b(?:texted|messaged|sent)(?: me| us| you)? (?:an?|the|this) codes?\b"
    r"|\bme (?:mandaron|mando|enviaron|envio|llego|ha llegado|han mandado|dieron) (?:un|el|este) codigo\b"
    rf"|\b(?:codes?|codigos?) (?:{_TO_PROVE})\b"
    r"|\b(?:safe|lock|locker|vault) combination\b|\bcombinacion de (?:la caja(?: fuerte)?|el candado)\b"
    r"|\bcombinacion del candado\b"
)
_WORD = expression(rf"(?i)(?:({_CARDS})|{_PINS}|{_CODES})")
"""Group 1: a card's security code, of three or four digits."""
_CARD = 1
_VALUE = expression(
    r"""(?i)^[\\"']{0,2}((?:(?: [\w().,-]+?){0,7}?(?: (?:is|are|was|es|son|era|sera)| ?[:=]|[:=])|'s)|)"""
    r"""(?: (?:el|the|now|ahora))?[ :]{0,2}[\\"'*]{0,3}([0-9](?:[ -]?[0-9]){2,9})([*#]?)"""
)
"""Groups: 1 the link, empty if only a space; 2 the digits; 3 the key that some doors require."""
_AFTER = expression(
    r"(?i)^(?:[0-9]|[A-Za-z_]|[.,/:][0-9]|-[A-Za-z]| ?%| ?\$"
    r"| (?:characters?|digits?|times?|minutes?|seconds?|hours?|days?|years?|caracteres|digitos|letras|veces|minutos"
    r"|horas|dias|anos|mm|cm|km|kg|eur|euros)\b)"
)
_BEFORE = expression(
    rf"(?i)\b(?:[A-Z]-)?([0-9](?:[ -]?[0-9]){{3,7}}) (?:is|es|as|como) (?:your|the|my|su|tu|mi|el|la) "
    rf"(?:[\w-]+ ){{0,4}}?(?:codes?|pin|otp|passcode|codigo (?:{_DE_QUE}))\b"
)
_TO_ENTER = expression(
    rf"(?i)\b(?:code|codigo)(?: is| es|:)? ([0-9](?:[ -]?[0-9]){{3,7}}) (?:(?:by|via|por|from|in"
    rf"|en) (?:(?:an?|the|un|el) )?"
    rf"{_CHANNELS}\b|(?:{_TO_PROVE})\b)"
)
_SURELY = expression(
    r"(?i)verif|secur|segur|acces|log-?in|sign-in|auth|autentic|pin|otp|one[- ]time|solo uso|[2m]fa|two-factor|unlock"
    r"|desbloqueo|recover|recuperacion|alarm|cv[cv]?2?$"
    r"|door|gate|garage|locker|padlock|keypad|puerta|portal|garaje|candado|taquilla|caja fuerte|banc|bank|cajero"
    rf"|\batm\b|(?:{_TO_PROVE})$"
)
"""Codes that are secret whatever they are for: the verification code of an order."""
_OTHER_BEFORE = expression(rf"(?i)\b(?:{OTHER_THINGS})[ _-]$")
_OTHER = expression(rf"(?i)\b(?:{OTHER_THINGS})\b")
_RECOVERY = expression(
    r"(?i)\b(?:(?:recovery|backup|back-up|rescue|scratch|emergency|restore|2fa|mfa|two-factor)[ _-](?:codes?|keys?)"
    r"|(?:codigos?|claves?) de (?:recuperacion|respaldo|emergencia|rescate|un solo uso|copia de seguridad))\b"
)
_LIST = expression(
    r"(?i)^[\"']{0,2}(?: (?:for|of|to|para|de|del|from) [\w. -]{1,40}?)?"
    r"(?: ?[:=|]| (?:is|are|was|were|es|son|eran)(?: ?:)?)[\s\[\"']{0,8}"
)
_ITEM = expression(
    r"(?i)^(?:[ \t]{0,4}(?:[-*\xa4]|[0-9]{1,2}[.)])[ \t]{1,4})?[\"'`]?"
    r"([0-9a-z]{4,}(?:-[0-9a-z]{2,}){0,12})[\"'`]?(?:[.!?]?$|[\])}]|[.!]?[\s,;|/]{1,8}(?:(?:and|y|or|o) )?)"
)
_MAX_ITEMS = 40
_LONGEST_ITEM = 128
_REACH = 96
_MIN_CARD, _MIN_DIGITS = 3, 4


def codes(sight: Sight) -> Iterator[Candidate]:
    """Find all PINs and codes named by a nearby word."""
    data = sight.data
    for word in _WORD.finditer(data):
        value = _VALUE.match(data[word.end() : word.end() + _REACH])
        if value is not None and _is_code(data, word, value):
            start, end = word.end() + value.start(2), word.end() + value.end(3)
            yield Candidate(start, end, FindingKind.PASSWORD, Confidence.MEDIUM, "code")
    yield from _recovery_codes(data)
    for found in _TO_ENTER.finditer(data):
        yield Candidate(*found.span(1), FindingKind.PASSWORD, Confidence.MEDIUM, "code")
    for found in _BEFORE.finditer(data):
        if _OTHER.search(found.group() or b"") is None:
            yield Candidate(*found.span(1), FindingKind.PASSWORD, Confidence.MEDIUM, "code")


def _recovery_codes(data: bytes) -> Iterator[Candidate]:
    """Find the codes after a word for recovery codes: one, or a list of them up to what is none."""
    word = _RECOVERY.search(data)
    while word is not None:
        at = word.end()
        linked = _LIST.match(data[at : at + _REACH])
        at += 0 if linked is None else linked.end()
        for _ in range(0 if linked is None else _MAX_ITEMS):
            item = _ITEM.match(data[at : at + _LONGEST_ITEM])
            if item is None or not _is_item(item.group(1) or b""):
                break
            yield Candidate(at + item.start(1), at + item.end(1), FindingKind.PASSWORD, Confidence.MEDIUM, "code")
            at += item.end()
        word = _RECOVERY.search(data, at)


def _is_item(written: bytes) -> bool:
    """Return True if a word of a list is a code: it has a digit, or groups of letters of one length."""
    groups = written.split(b"-")
    return bool(digits_of(written)) or (len(groups) > 1 and len({len(one) for one in groups}) == 1)


def names_code(name: bytes) -> bool:
    """Return True if a folded name names a PIN or a code."""
    return _WORD.search(name) is not None


def _is_code(data: bytes, word: Match, value: Match) -> bool:
    if _SURELY.search(word.group() or b"") is None and (
        _OTHER_BEFORE.search(data[max(0, word.start() - 24) : word.start()]) is not None
        or _OTHER.search(data[word.start() : word.end() + value.end(1)]) is not None
    ):
        return False
    digits = len(digits_of(value.group(2) or b""))
    linked = bool(value.group(1))
    if digits < (_MIN_CARD if word.start(_CARD) >= 0 else _MIN_DIGITS):
        return False
    if (
        not linked
        and not data[word.end() : word.end() + 1].isspace()
        and data[word.end() : word.end() + 1] not in b"\"'\\"
    ):
        return False
    return _AFTER.search(data[word.end() + value.end(3) : word.end() + value.end(3) + 16]) is None
