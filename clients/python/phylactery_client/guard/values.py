"""Ids, arguments and results as RiskGate takes them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_RESULT_BYTES: Final = 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


class NotShowable(Exception):
    """A result that RiskGate cannot be shown; the message says why, without any of it."""


def safe_id(name: str) -> str:
    """Return the id, or a hash of it if RiskGate would not take it: ids are 1 to 128 of [A-Za-z0-9_.:-]."""
    if _ID.fullmatch(name):
        return name
    return "id-" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def execution_id_of(run_id: str, tool_call_id: str) -> str:
    """Return the execution id of a call, the same in every thread and process: RiskGate lets one call have it."""
    named = json.dumps([safe_id(run_id), safe_id(tool_call_id)])
    return "ex-" + hashlib.sha256(named.encode()).hexdigest()[:48]


def edited_id(tool_call_id: str, tool: str, arguments_json: str) -> str:
    """Return the id under which a call is evaluated whose own id was evaluated with other arguments."""
    return f"{tool_call_id[:80]}.{hashlib.sha256(f'{tool} {arguments_json}'.encode()).hexdigest()[:24]}"


def arguments_text(arguments: Mapping[str, Any] | str) -> str:
    """Return arguments as JSON text. Raise ValueError unless they are one object with unique keys and finite numbers.

    Text is passed on as it is, because RiskGate hashes what was proposed.
    """
    try:
        if not isinstance(arguments, str):
            return json.dumps(dict(arguments), allow_nan=False)
        value = json.loads(arguments or "{}", object_pairs_hook=_unique, parse_constant=_no_number)
    except (TypeError, RecursionError):
        raise ValueError("the arguments are not JSON") from None
    except ValueError as error:
        # the error of the parser quotes the text
        raise ValueError(error.args[0] if type(error) is ValueError else "the arguments are not JSON") from None
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004 - one error for whatever is wrong with them
            "the arguments are not a JSON object"
        )
    return arguments or "{}"


def shown(result: Any) -> dict[str, str]:
    """Return the fields of Observe for a result: text, JSON, or neither for None. Raise NotShowable."""
    if result is None:
        return {}
    kind = "result_text" if isinstance(result, str) else "result_json"
    try:
        text = result if isinstance(result, str) else json.dumps(result, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):  # UnicodeEncodeError is a ValueError
        raise NotShowable("it is neither text nor JSON") from None
    if size > MAX_RESULT_BYTES:
        raise NotShowable(f"it has {size} bytes, and at most {MAX_RESULT_BYTES} can be shown")
    return {kind: text}


def json_or_text(text: str) -> Any:
    """Return the object or list that a text is in JSON, any other text as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def result_facts(text: str | None) -> dict[str, Any]:
    """Return the hash and size of a result as ReportOutcome takes them."""
    if text is None:
        return {}
    return {"result_hash": "sha256:" + hashlib.sha256(text.encode()).hexdigest(), "result_size": len(text)}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object of the arguments has a key twice")
    return found


def _no_number(_: str) -> Callable[[], None]:
    raise ValueError("the arguments have a number that is not finite")
