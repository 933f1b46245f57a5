"""Reads what a caller shows of a tool call: its arguments as RiskGate binds them, its result as any JSON there is.

A result is somebody else's text, so less is asked of it than of arguments: a number may be as large as it likes. What
two readers would read differently is refused all the same, and a refusal never holds what was shown.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from phylactery_chassis.errors import InvalidArgument, Violation

from phylactery_riskgate.domain.model import Json
from phylactery_riskgate.domain.policy.guard import MAX_DEPTH, GuardError, check_depth, read_json

_MAX_DIGITS = 1_000
"""Longer numbers are refused unread: reading one takes the square of its length."""


class _FaultError(Exception):
    """A JSON text that is refused, and why."""


def shown_arguments(text: str) -> Json:
    """Read the arguments of a call; an empty text is an empty object. Raise InvalidArgument INVALID_REQUEST."""
    if not text:
        return {}
    try:
        return read_json(text)
    except GuardError as error:
        raise _invalid("arguments_json", f"is refused ({error.code}); show the bound arguments of Evaluate") from None


def shown_result(text: str) -> Any:
    """Read a result that is JSON. Raise InvalidArgument INVALID_REQUEST."""
    try:
        check_depth(text)
        value = _DECODER.decode(text)
        # The message itself is valid UTF-8, so half a pair can come by an escape alone; one character is found sooner.
        if "\\" in text and "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except GuardError:
        raise _invalid("result_json", f"is nested deeper than {MAX_DEPTH}; show it as result_text") from None
    except _FaultError as fault:
        raise _invalid("result_json", f"{fault}; show it as result_text") from None
    except UnicodeEncodeError:
        raise _invalid("result_json", "holds half a surrogate pair; show it as result_text") from None
    except (ValueError, RecursionError):
        raise _invalid("result_json", "is no JSON text; show it as result_text") from None
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> Json:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise _FaultError("repeats a key")
    return read


def _integer(literal: str) -> int:
    return int(_short(literal))


def _fraction(literal: str) -> float:
    number = float(_short(literal))
    if number in (float("inf"), float("-inf")):
        raise _FaultError("holds a number past all bounds")
    return number


def _short(literal: str) -> str:
    if len(literal) > _MAX_DIGITS:
        raise _FaultError(f"holds a number of more than {_MAX_DIGITS:,} digits")
    return literal


def _constant(literal: str) -> NoReturn:
    raise _FaultError(f"holds {literal}, which is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _invalid(field: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST", f"the request is not valid: {field}: {why}", violations=[Violation(field, why)]
    )
