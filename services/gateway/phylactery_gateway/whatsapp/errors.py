"""Errors of the Graph API, each with what is done about it: docs/whatsapp.md has the same table for operators."""

from __future__ import annotations

from typing import Any, Final

from phylactery_gateway.channels.port import Action, SendError

_HOUR: Final = 3_600.0

_BY_CODE: Final[dict[int, tuple[Action, float]]] = {
    # the account
    190: (Action.PAUSE, 60.0),  # the token is no longer valid: the operator replaces it, the file is read again
    368: (Action.PAUSE, _HOUR),  # blocked for violations of policy
    131031: (Action.PAUSE, _HOUR),  # the account is locked
    131048: (Action.PAUSE, _HOUR),  # many people reported messages of this number as spam
    131064: (Action.NO_TEMPLATES, 24 * _HOUR),  # a limit after violations by templates
    10: (Action.PAUSE, 300.0),  # the token lacks a permission: the operator grants it
    200: (Action.PAUSE, 300.0),
    # rates
    130429: (Action.PAUSE, 5.0),  # messages a second of the number, in and out together
    131056: (Action.SLOW_DOWN, 6.0),  # too many to the same person
    80007: (Action.PAUSE, 60.0),  # calls an hour of the business account
    4: (Action.PAUSE, 60.0),  # calls an hour of the application
    131057: (Action.PAUSE, 300.0),  # the account is in maintenance, or being moved
    # the person
    131047: (Action.WINDOW, 0.0),  # more than 24 hours since the person wrote
    131026: (Action.FAIL, 0.0),  # not on WhatsApp, blocked us, or too old an application
    131049: (Action.FAIL, 0.0),  # not delivered for the health of the ecosystem; a second try soon makes it worse
    131050: (Action.OPTED_OUT, 0.0),  # the person asked for no such messages
    130472: (Action.FAIL, 0.0),  # the person's number is part of an experiment of Meta's
    131062: (Action.FAIL, 0.0),  # an authentication template goes to a phone number only
    # the message
    131051: (Action.WITHOUT_OPTIONS, 0.0),  # the type is not supported
    131052: (Action.FAIL, 0.0),  # media of a person could not be downloaded by Meta
    131053: (Action.FAIL, 0.0),  # media of ours could not be uploaded
    131009: (Action.WITHOUT_OPTIONS, 0.0),  # a parameter of the message is not valid
    100: (Action.WITHOUT_OPTIONS, 0.0),  # a parameter of the call is not valid
    # Meta
    1: (Action.RETRY, 0.0),
    2: (Action.RETRY, 0.0),
    131000: (Action.RETRY, 0.0),
    131016: (Action.RETRY, 0.0),
}
_TOO_MANY, _SERVER_FAULTS, _UNAUTHORIZED = 429, 500, 401


def error_of_code(code: int | str) -> SendError:
    """Return what is done about a code, also one that arrives later in a status. An unknown one is not sent again."""
    try:
        number = int(code)
    except ValueError:
        return SendError(Action.FAIL, "unknown")
    action, pause = _BY_CODE.get(number, (Action.FAIL, 0.0))
    return SendError(action, str(number), retry_after=pause)


def error_of_response(status: int, body: Any, retry_after: str = "") -> SendError:
    """Return what is done about a response that is no success."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code in _BY_CODE:
        return error_of_code(code)
    if status == _TOO_MANY:
        return SendError(Action.PAUSE, "429", retry_after=_seconds(retry_after))
    if status >= _SERVER_FAULTS:
        return SendError(Action.UNCERTAIN, str(status))  # it may have been sent before it failed
    if status == _UNAUTHORIZED:
        return error_of_code(190)
    return SendError(Action.FAIL, str(code) if isinstance(code, int) else str(status))


def _seconds(text: str) -> float:
    return min(float(text), _HOUR) if text.isascii() and text.isdigit() else 5.0
