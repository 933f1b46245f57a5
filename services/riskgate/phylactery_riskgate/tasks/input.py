"""Parsing of tool calls reported by callers: arguments as RiskGate binds them, results as any JSON.

A result is third-party text, so the rules are looser than for arguments: numbers may be of any size. Text that two
parsers would read differently is refused all the same, and an error never contains the input.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from phylactery_chassis.errors import InvalidArgument, Violation

from phylactery_riskgate.domain.model import Json
from phylactery_riskgate.domain.policy.guard import MAX_DEPTH, GuardError, check_depth, read_json

_MAX_DIGITS = 1_000
"""Longer numbers are refused unparsed, because parsing takes quadratic time."""


class _FaultError(Exception):
    """A refused JSON text, with the reason."""


def shown_arguments(text: str) -> Json:
    """Parse the arguments of a call; an empty text is an empty object. Raise InvalidArgument INVALID_REQUEST."""
    if not text:
        return {}
    try:
        return read_json(text)
    except GuardError as error:
        raise _invalid("arguments_json", f"is refused ({error.code}); show the bound arguments of Evaluate") from None


def shown_result(text: str) -> Any:
    """Parse a JSON result. Raise InvalidArgument INVALID_REQUEST."""
    try:
        check_depth(text)
        value = _DECODER.decode(text)
        # the message is valid UTF-8, so only an escape can produce a lone surrogate; the one-character test is faster
        if "\\" in text and "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except GuardError:
        raise _invalid("result_json", f"is nested deeper than {MAX_DEPTH}; send it as result_text") from None
    except _FaultError as fault:
        raise _invalid("result_json", f"{fault}; send it as result_text") from None
    except UnicodeEncodeError:
        raise _invalid("result_json", "contains an unpaired surrogate; send it as result_text") from None
    except (ValueError, RecursionError):
        raise _invalid("result_json", "is not valid JSON; send it as result_text") from None
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
        raise _FaultError("contains a number out of range")
    return number


def _short(literal: str) -> str:
    if len(literal) > _MAX_DIGITS:
        raise _FaultError(f"holds a number of more than {_MAX_DIGITS:,} digits")
    return literal


def _constant(literal: str) -> NoReturn:
    raise _FaultError(f"holds {literal}, which is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _invalid(field: str, why: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST", f"the request is not valid: {field}: {why}", violations=[Violation(field, why)]
    )
