"""Endpoint failures as values: whether a retry can help, and whether the endpoint is at fault.

An endpoint's own message goes to the log only, and without the key, without anything that resembles one, and without
the words of the conversation: an endpoint may repeat any of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

REFUSED_KEY: Final = "MODEL_REFUSED_KEY"
FORBIDDEN: Final = "MODEL_FORBIDDEN"
NOT_FOUND: Final = "MODEL_NOT_FOUND"
BAD_REQUEST: Final = "MODEL_BAD_REQUEST"
TOO_LONG: Final = "MODEL_CONVERSATION_TOO_LONG"
QUOTA: Final = "MODEL_QUOTA_EXHAUSTED"
RATE_LIMITED: Final = "MODEL_RATE_LIMITED"
SERVER_ERROR: Final = "MODEL_SERVER_ERROR"
UNREACHABLE: Final = "MODEL_UNREACHABLE"
TIMEOUT: Final = "MODEL_TIMEOUT"
MALFORMED: Final = "MODEL_MALFORMED"
CUT_OFF: Final = "MODEL_CUT_OFF"
TOO_LARGE: Final = "MODEL_REPLY_TOO_LARGE"
REDIRECTED: Final = "MODEL_REDIRECTED"
CIRCUIT_OPEN: Final = "MODEL_CLOSED_OFF"

_ADVICE: Final[Mapping[str, str]] = {
    REFUSED_KEY: "it refused the key; set the right one in PHYLACTERY_MODEL_API_KEY",
    FORBIDDEN: "it does not let this key use the model; ask its operator",
    NOT_FOUND: "it has no such model or path; check PHYLACTERY_MODEL and PHYLACTERY_MODEL_BASE_URL",
    BAD_REQUEST: "it does not take what it was asked; it may know no tools, or no such setting",
    TOO_LONG: "the conversation is longer than the model takes",
    QUOTA: "what was paid there is used up",
    RATE_LIMITED: "it is asked too often",
    SERVER_ERROR: "it failed",
    UNREACHABLE: "it cannot be reached, or closed the connection",
    TIMEOUT: "it did not answer in time",
    MALFORMED: "its answer is not a reply",
    CUT_OFF: "its reply stopped before the end",
    TOO_LARGE: "its reply is larger than AGENT_MODEL_REPLY_BYTES",
    REDIRECTED: "it sends elsewhere, where no conversation is taken to; set PHYLACTERY_MODEL_BASE_URL to the new place",
    CIRCUIT_OPEN: "it failed too often; its circuit is open for a while",
}
_RETRIED: Final = frozenset({RATE_LIMITED, SERVER_ERROR, UNREACHABLE, TIMEOUT, MALFORMED, CUT_OFF})
_OF_STATUS: Final[Mapping[int, str]] = {
    401: REFUSED_KEY,
    403: FORBIDDEN,
    404: NOT_FOUND,
    408: TIMEOUT,
    409: SERVER_ERROR,
    413: TOO_LONG,
    429: RATE_LIMITED,
}
_OF_CODE: Final[Mapping[str, str]] = {
    "context_length_exceeded": TOO_LONG,
    "insufficient_quota": QUOTA,
    "invalid_api_key": REFUSED_KEY,
    "model_not_found": NOT_FOUND,
}
"""Codes that are more specific than the status."""
MAX_SAID: Final = 300
"""Characters of an endpoint's message that reach the log."""
_MASKED: Final = "[…]"
_PHRASE: Final = 3
"""This many consecutive words shared with the conversation are treated as part of it."""
_MARKS: Final = "\"'`“”‘’«»()[]{}<>.,;:!?"
_OPAQUE: Final = re.compile(r"\*{2}|[A-Za-z0-9+/_=-]{20}|\d{5}|@|\b(?:sk|pk|key|tok)[-_]")
_CODE = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


@dataclass(eq=False)
class ModelFault(Exception):
    """One attempt that gave no reply.

    retry_after is the endpoint's requested pause in seconds; began means that a reply had begun, which is usually
    billed; heard_bytes is how much was received; status is the HTTP status, 0 if there was none; code is the endpoint's
    own code.
    """

    reason: str
    status: int = 0
    code: str = ""
    retry_after: float | None = None
    began: bool = False
    heard_bytes: int = 0
    said: str = field(default="", repr=False)
    """The endpoint's message as received: for said_of only."""

    @property
    def retried(self) -> bool:
        """Return True if the same request may succeed a moment later."""
        return self.reason in _RETRIED

    @property
    def ails(self) -> bool:
        """Return True if the fault counts against the endpoint rather than against the request."""
        return self.retried or self.reason in (QUOTA, TOO_LARGE)

    def __str__(self) -> str:
        """Return a description for people."""
        detail = f"HTTP {self.status}" + (f" {self.code}" if self.code else "") if self.status else ""
        return f"{_ADVICE[self.reason]}" + (f" ({detail})" if detail else "")


def of_status(status: int, body: Any, *, secret: str, retry_after: float | None = None) -> ModelFault:
    """Return the fault for an HTTP status.

    Only the code is taken from the body, and only if it is a word and not the key.
    """
    code = _code(body, secret)
    if 300 <= status < 400:  # noqa: PLR2004 - a redirect
        return ModelFault(REDIRECTED, status)
    reason = _OF_CODE.get(code) if 400 <= status < 500 else None  # noqa: PLR2004 - the caller's fault
    reason = reason or _OF_STATUS.get(status) or (SERVER_ERROR if status >= 500 else BAD_REQUEST)  # noqa: PLR2004
    return ModelFault(reason, status, code, retry_after, said=_message(body))


def of_error_event(error: Any, *, secret: str) -> ModelFault:
    """Return the fault for an error event in the middle of a stream."""
    code = _code({"error": error}, secret)
    return ModelFault(_OF_CODE.get(code, SERVER_ERROR), code=code, said=_message({"error": error}), began=True)


def said_of(fault: ModelFault, *, secret: str, shown: str) -> str:
    """Return an endpoint's error message in a form safe for the log: nothing of the key or the conversation.

    ``shown`` is the conversation. Long words, hidden characters, numbers and addresses are removed too, whatever their
    origin.
    """
    text = "".join(char if char.isprintable() else " " for char in fault.said[:MAX_SAID])
    words = (text.replace(secret, _MASKED) if secret else text).split()
    known = " ".join(shown.split()).lower()
    hidden = {place for place, word in enumerate(words) if _tells(word, known)}
    for place in range(len(words) - _PHRASE + 1):
        if " ".join(words[place : place + _PHRASE]).lower() in known:
            hidden.update(range(place, place + _PHRASE))
    return " ".join(_MASKED if place in hidden else word for place, word in enumerate(words))


def _tells(word: str, known: str) -> bool:
    """Return True if a word may be a secret, or a distinctive word of the conversation."""
    bare = word.strip(_MARKS)
    if _OPAQUE.search(word):
        return True
    plain = bare.isalpha() and (bare.islower() or bare.istitle()) and bare == word.rstrip(".,;:")
    return bool(bare) and not plain and bare.lower() in known


def _message(body: Any) -> str:
    error = body.get("error", body) if isinstance(body, dict) else body
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _code(body: Any, secret: str) -> str:
    error = body.get("error", body) if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(code, str) or not _CODE.fullmatch(code) or (secret and (secret in code or code in secret)):
        return ""
    return code
