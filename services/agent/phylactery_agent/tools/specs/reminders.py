"""Specifications of create_reminder, list_reminders and cancel_reminder, for later messages in the same thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from phylactery_understanding.language.text import is_file_name
from pydantic import Field

from phylactery_agent.i18n.messages import in_each_language
from phylactery_agent.rules.expressions import expression
from phylactery_agent.timeparse.phrases import is_time, tidy
from phylactery_agent.timeparse.vocabulary import when_expression
from phylactery_agent.tools.contract import Contract, Example, Pattern, ToolSpec
from phylactery_agent.tools.specs.parts import ANY_EN, ANY_ES, READ_EN, READ_ES, Arguments, object_schema
from phylactery_agent.tools.specs.shown import created_shown, reminders_shown

_REMIND_ES: Final = r"(?:recu[eé]rdame|av[ií]same)"
_MAKE_ES: Final = r"(?:crea|crear|cr[eé]ame|pon|poner|ponme|programa|programar)\s+un\s+recordatorio"
_MAKE_EN: Final = r"(?:set|create|make|schedule)(?:\s+me)?\s+a\s+reminder"
_CANCEL_ES: Final = r"(?:cancela|cancelar|borra|borrar|elimina|eliminar|quita|anula)"
_CANCEL_EN: Final = r"(?:cancel|delete|remove)"
_ALARM_ES: Final = (
    r"(?:pon|ponme|poneme|programa|crea)\s+(?:una\s+alarma|un\s+temporizador|un\s+timer)\s+(?:para\s+|de\s+)?"
)
_ALARM_EN: Final = r"(?:set|start|create)(?:\s+me)?\s+(?:an\s+alarm|a\s+timer)\s+(?:for\s+|of\s+)?"
_ALARM: Final = {"es": "alarma", "en": "alarm"}
"""What a reminder says that only rings."""
_ALARM_TIME: Final = r"(?P<when>[^:;\"]+(?::[0-5][0-9][^:;\"]*)?)"
_ALL_ES: Final = r"todos\s+(?:mis|los)\s+recordatorios"
_ALL_EN: Final = r"all\s+(?:of\s+)?(?:my\s+|the\s+)?reminders"
_ALL: Final = expression(r"(?i)^(?:" + _ALL_ES + "|" + _ALL_EN + r")$")
_TEXT: Final = r"(?P<text>.+)"
_SHORT_TEXT: Final = r"(?P<text>.+?)"
_LATER: Final = when_expression(last=True)
_FIRST: Final = when_expression(last=False)
_LIST_ES: Final = r"(?:lista|listar|l[ií]stame|" + READ_ES + ")"
_LIST_EN: Final = r"(?:list|" + READ_EN + ")"


class CreateReminderArguments(Arguments):
    """The arguments of create_reminder; an empty time_zone means the configured one."""

    text: str = Field(min_length=1, max_length=1_000)
    when: str = Field(min_length=1, max_length=200)
    repeat: str = Field(default="", max_length=200)
    time_zone: str = Field(default="", max_length=64)


class ListRemindersArguments(Arguments):
    """The arguments of list_reminders."""

    limit: int = Field(default=20, ge=1, le=100)


class CancelReminderArguments(Arguments):
    """The arguments of cancel_reminder: an id, or words that match exactly one reminder."""

    reminder: str = Field(min_length=1, max_length=1_000)


def _with_time(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments without the punctuation after the time, or None if the time is invalid."""
    when = tidy(args["when"])
    return {**args, "when": when} if is_time(when) else None


def _from_now(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments with the time as it is said alone, or None: an alarm for 7, a timer for 10 minutes."""
    said, before = tidy(args["when"]), ("a", "a las", "en") if args["text"] == _ALARM["es"] else ("at", "in")
    when = next((one for one in (said, *(f"{word} {said}" for word in before)) if is_time(one)), None)
    return None if when is None else {**args, "when": when}


def _one_of_them(args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments, or None if what is named is a file: delete the one in a.txt."""
    return None if any(map(is_file_name, args["reminder"].split())) else dict(args)


def is_every_reminder(reminder: str) -> bool:
    """Return True if words mean all the person's reminders and name none."""
    return _ALL.match(reminder.strip()) is not None


def _asks(language: Any, expression: str) -> Pattern:
    return Pattern(language, expression, meant=_with_time)


CREATE_REMINDER: Final = ToolSpec(
    name="create_reminder",
    descriptions=in_each_language("tool_create_reminder"),
    schema=object_schema(
        ["text", "when"],
        text={"type": "string", "minLength": 1, "maxLength": 1_000},
        when={"type": "string", "minLength": 1, "maxLength": 200},
        repeat={"type": "string", "maxLength": 200, "default": ""},
        time_zone={"type": "string", "maxLength": 64, "default": ""},
    ),
    args_model=CreateReminderArguments,
    contract=Contract(
        risk="low", effect="write", idempotency="idempotent_by_key", retries=1, answers="json", reversible=True
    ),
    verbs=(_REMIND_ES, r"remind\s+me", _MAKE_ES, _MAKE_EN, _ALARM_ES, _ALARM_EN),
    patterns=(
        # The longest time at the end is tried first; if it is not a time, the shortest.
        _asks("es", _REMIND_ES + r"\s+(?:que\s+|de\s+)?" + _SHORT_TEXT + r",?\s+" + _LATER),
        _asks("es", _REMIND_ES + r"\s+" + _FIRST + r"(?:que\s+|de\s+|para\s+)?" + _TEXT),
        _asks("es", _REMIND_ES + r"\s+(?:que\s+|de\s+)?" + _TEXT + r",?\s+" + _LATER),
        _asks("es", _MAKE_ES + r"\s+(?:para\s+)?" + _FIRST + r"(?:para\s+|de\s+|que\s+diga:?\s+)?" + _TEXT),
        _asks("es", _MAKE_ES + r"\s+(?:para|de)\s+" + _SHORT_TEXT + r",?\s+(?:para\s+)?" + _LATER),
        _asks("en", r"remind\s+me\s+(?:to\s+|that\s+|about\s+|of\s+)?" + _SHORT_TEXT + r",?\s+" + _LATER),
        _asks("es", _FIRST + _REMIND_ES + r"\s+(?:que\s+|de\s+)?" + _TEXT),
        _asks("en", _FIRST + r"remind\s+me\s+(?:to\s+|that\s+|about\s+|of\s+)?" + _TEXT),
        _asks("en", r"remind\s+me\s+" + _FIRST + r"(?:to\s+|that\s+|about\s+|of\s+|for\s+)?" + _TEXT),
        _asks("en", r"remind\s+me\s+(?:to\s+|that\s+|about\s+|of\s+)?" + _TEXT + r",?\s+" + _LATER),
        _asks("en", _MAKE_EN + r"\s+(?:for\s+)?" + _FIRST + r"(?:to\s+|about\s+|saying:?\s+)?" + _TEXT),
        _asks("en", _MAKE_EN + r"\s+(?:to|about)\s+" + _SHORT_TEXT + r",?\s+(?:for\s+)?" + _LATER),
        Pattern("es", _ALARM_ES + _ALARM_TIME, {"text": _ALARM["es"]}, meant=_from_now),
        Pattern("en", _ALARM_EN + _ALARM_TIME, {"text": _ALARM["en"]}, meant=_from_now),
    ),
    examples=(
        Example(
            "es",
            "recuérdame pagar el arriendo mañana a las 9 de la mañana",
            {"text": "pagar el arriendo", "when": "mañana a las 9 de la mañana"},
        ),
        Example("es", "avísame en 20 minutos de sacar la pizza", {"text": "sacar la pizza", "when": "en 20 minutos"}),
        Example(
            "es",
            "pon un recordatorio para cada lunes a las 08:30: reunión de equipo",
            {"text": "reunión de equipo", "when": "cada lunes a las 08:30"},
        ),
        Example(
            "en",
            "remind me to water the plants every friday at 6 pm",
            {"text": "water the plants", "when": "every friday at 6 pm"},
        ),
        Example("en", "remind me in 20 minutes to call Ana", {"text": "call Ana", "when": "in 20 minutes"}),
        Example(
            "en",
            "set a reminder for tomorrow at noon: lunch with Bob",
            {"text": "lunch with Bob", "when": "tomorrow at noon"},
        ),
    ),
    labels=in_each_language("tool_create_reminder.label"),
    shown=created_shown,
)

LIST_REMINDERS: Final = ToolSpec(
    name="list_reminders",
    descriptions=in_each_language("tool_list_reminders"),
    schema=object_schema([], limit={"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
    args_model=ListRemindersArguments,
    contract=Contract(risk="low", effect="read", idempotency="read_only", retries=1, answers="json"),
    verbs=(_LIST_ES, _LIST_EN, r"qu[eé]\s+recordatorios", r"(?:what|which)\s+reminders"),
    patterns=(
        Pattern("es", _LIST_ES + r"\s+(?:todos\s+)?(?:mis|los)\s+recordatorios(?:\s+pendientes)?"),
        Pattern("es", r"qu[eé]\s+recordatorios\s+(?:tengo|hay)(?:\s+pendientes)?"),
        Pattern("es", r"(?:(?:tengo|hay)\s+)?(?:" + ANY_ES + r"\s+)?recordatorios?(?:\s+pendientes?)?"),
        Pattern("es", r"qu[eé]\s+(?:cosas\s+)?tengo\s+(?:pendientes?|programad[oa]s?|apuntad[oa]s?|por\s+hacer)"),
        Pattern("en", _LIST_EN + r"\s+(?:all\s+)?(?:my|the)\s+reminders"),
        Pattern(
            "en", r"what(?:['’]?s|\s+is|\s+have\s+I\s+got|\s+do\s+I\s+have)\s+(?:coming\s+up|pending|scheduled|planned)"
        ),
        Pattern("en", r"(?:what|which)\s+reminders\s+(?:do\s+I\s+have|are\s+there)"),
        Pattern("en", r"(?:(?:do\s+I\s+have|are\s+there)\s+)?(?:" + ANY_EN + r"\s+)?reminders?"),
    ),
    examples=(
        Example("es", "¿qué recordatorios tengo?", {}),
        Example("es", "muéstrame mis recordatorios", {}),
        Example("en", "list my reminders", {}),
        Example("en", "what reminders do I have?", {}),
    ),
    labels=in_each_language("tool_list_reminders.label"),
    shown=reminders_shown,
)

CANCEL_REMINDER: Final = ToolSpec(
    name="cancel_reminder",
    descriptions=in_each_language("tool_cancel_reminder"),
    schema=object_schema(["reminder"], reminder={"type": "string", "minLength": 1, "maxLength": 1_000}),
    args_model=CancelReminderArguments,
    contract=Contract(
        risk="low",
        effect="write",
        idempotency="idempotent_by_key",
        retries=1,
        controls=("/reminder",),
        answers="json",
        reversible=True,
    ),
    verbs=(_CANCEL_ES, _CANCEL_EN),
    patterns=(
        Pattern("es", _CANCEL_ES + r"\s+(?P<reminder>" + _ALL_ES + r")"),
        Pattern("en", _CANCEL_EN + r"\s+(?P<reminder>" + _ALL_EN + r")"),
        Pattern("es", _CANCEL_ES + r"\s+(?:el|mi)\s+recordatorio\s+(?:de\s+|para\s+|que\s+dice\s+)?(?P<reminder>.+?)"),
        Pattern(
            "en",
            _CANCEL_EN + r"\s+(?:the|my)\s+reminder\s+(?:to\s+|about\s+|for\s+|of\s+|that\s+says\s+)?(?P<reminder>.+?)",
        ),
        Pattern("es", _CANCEL_ES + r"\s+el\s+(?:de(?:\s+la|l)?|sobre)\s+(?P<reminder>.+?)", meant=_one_of_them),
        Pattern(
            "en",
            r"(?:" + _CANCEL_EN + r"|scrap|drop)\s+the\s+(?P<reminder>\pL[^.]*?)\s+(?:one|reminder)",
            meant=_one_of_them,
        ),
        Pattern("en", _CANCEL_EN + r"\s+the\s+one\s+(?:about|for|to)\s+(?P<reminder>.+?)", meant=_one_of_them),
    ),
    examples=(
        Example("es", "cancela el recordatorio de pagar el arriendo", {"reminder": "pagar el arriendo"}),
        Example("en", "cancel the reminder to water the plants", {"reminder": "water the plants"}),
        Example("es", "cancela todos mis recordatorios", {"reminder": "todos mis recordatorios"}),
        Example("en", "cancel all my reminders", {"reminder": "all my reminders"}),
    ),
    labels=in_each_language("tool_cancel_reminder.label"),
    quotes_output=False,
)
