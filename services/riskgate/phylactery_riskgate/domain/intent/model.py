"""The facts of a task about one call, and the evidence for them.

Verdicts contain these types, so this module does not depend on the types of a decision (domain/model.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

NAMED: Final = 0
"""The user's words in this task, or a system field of something the user named."""
LISTED: Final = 1
"""Known to a registry or the system, and not named by the user."""
POINTED: Final = 2
"""Text from a place the user pointed to."""
FOREIGN: Final = 3
"""Other text, unknown origin, or a contradiction of a literal the user gave."""


CLEAR: Final = 2
"""The intent of a call that an ask yields."""

RULES, INTERPRETER, CONFIRMED, NOBODY = "rules", "interpreter", "confirmed", "nobody"
"""Which component understood a request."""
FROM_TEXT: Final = "a content that stands in a text, and not in the user's words"
"""A reason without a signal: in many calls it is what the user wants, as in a reply that quotes."""
MASKED: Final = "a mask, in place of a value that was masked in this task"
CUT_SHORT: Final = "a mark in place of text, or the replacement or a copy of something of which only a part was read"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The origin of one argument: its JSON Pointer, ``origin`` from 0 to 3, and a short name of the place."""

    path: str
    origin: int
    place: str


@dataclass(frozen=True, slots=True)
class FormRun:
    """The form whose run submits a call: its id, its version, and whether it wants somebody else's approval.

    The agent's runtime says so of exactly these arguments.
    """

    form: str
    version: str
    peer: bool = False


class Heard(NamedTuple):
    """Who asks for a call of a kind, whatever its arguments.

    ``by_user``: any of the user's messages asks for it, or leaves it to a text what is done. ``in_text``: a text that
    was read or passed on asks for it. ``confirmed``: the user's newest message begins with a yes, and an earlier one
    asks for it.
    """

    by_user: bool = False
    in_text: bool = False
    confirmed: bool = False


NOT_HEARD: Final = Heard()


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What a task says about one call.

    ``shown`` is True if RiskGate was shown a task at all. ``intent`` is 0 not requested, 1 partly, 2 clearly requested,
    according to ``intent_words``. ``arguments`` are sorted worst first; ``worst`` is over the control arguments.
    ``signals`` is 0 none, 1 worth a question, 2 worth a stop, each with its reason.

    ``refused`` says that the user retracted or forbade the call. ``foreign`` says that a control argument occurs
    only in a text the user neither wrote nor pointed to, or that only a text states the arguments.
    ``understood_by`` is the component that understood the request, ``missing`` the kind of what is not understood
    and the word. ``ask`` is the request that the call uses up: the task whose words contain it, and its number
    among them; empty if no ask yields the call. ``quota`` is how many calls the ask allows, 0 for all of its set,
    and ``used`` how many it has had already. ``retracted`` is the later task whose words retracted the call.
    """

    shown: bool
    intent: int
    intent_words: tuple[str, ...]
    arguments: tuple[Evidence, ...]
    worst: int
    signals: int
    signal_reasons: tuple[str, ...]
    refused: bool = False
    foreign: bool = False
    understood_by: str = NOBODY
    missing: tuple[str, str] = ("", "")
    ask: str = ""
    quota: int = 1
    used: int = 0
    retracted: str = ""
    authorship: tuple[tuple[int, int], ...] = ()
    """For explanations only, no policy input: how many code points of each message counted as the user's own, and how
    many as others', newest first, up to the first message of which it is not known."""
    form_run: FormRun | None = None
    """The form that submits the call, whether or not the call has a task; None for any other call."""
    heard: Heard = NOT_HEARD
    """Who asks for a call of this kind, whatever its arguments."""
    pointed: bool = False
    """``foreign`` only because the newest message does not ask for the call: the values are in texts the user pointed
    to."""
    own: bool = False
    """A control argument has a value of the user's."""
    read: bool = True
    """A result or a text of others was shown in the task; what was recorded without this counts as if it was."""

    @property
    def left(self) -> int | None:
        """Return how many more calls the ask allows, None for all of its set."""
        return max(0, self.quota - self.used) if self.quota else None

    @property
    def from_text(self) -> bool:
        """Return True if some content is from a tool's output and not from the user's words, or if that is unknown."""
        return not self.shown or FROM_TEXT in self.signal_reasons

    @property
    def masked(self) -> bool:
        """Return True if the call holds a mask of a value that was masked in this task, or if that is unknown."""
        return not self.shown or MASKED in self.signal_reasons

    @property
    def cut_short(self) -> bool:
        """Return True if the call replaces what was only read in part, or if that is unknown."""
        return not self.shown or CUT_SHORT in self.signal_reasons

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON."""
        return {
            "shown": self.shown,
            "intent": self.intent,
            "intent_words": list(self.intent_words),
            "arguments": [[one.path, one.origin, one.place] for one in self.arguments],
            "worst": self.worst,
            "signals": self.signals,
            "signal_reasons": list(self.signal_reasons),
            "refused": self.refused,
            "foreign": self.foreign,
            "understood_by": self.understood_by,
            "missing": list(self.missing),
            "ask": self.ask,
            "quota": self.quota,
            "used": self.used,
            "retracted": self.retracted,
            **({"authorship": [list(one) for one in self.authorship]} if self.authorship else {}),
            **({} if self.form_run is None else {"form_run": asdict(self.form_run)}),
            "heard": self.heard._asdict(),
            "pointed": self.pointed,
            "own": self.own,
            "read": self.read,
        }

    @staticmethod
    def from_json(value: Any) -> TaskFacts:
        """Return the facts encoded by ``to_json``."""
        return TaskFacts(
            shown=value["shown"],
            intent=value["intent"],
            intent_words=tuple(value["intent_words"]),
            arguments=tuple(Evidence(path, origin, place) for path, origin, place in value["arguments"]),
            worst=value["worst"],
            signals=value["signals"],
            signal_reasons=tuple(value["signal_reasons"]),
            refused=value.get("refused", False),
            foreign=value.get("foreign", value["worst"] == FOREIGN),
            understood_by=value.get("understood_by", RULES if value["intent"] == CLEAR else NOBODY),
            missing=tuple(value.get("missing", ("", ""))),
            ask=value.get("ask", ""),
            quota=value.get("quota", 0),
            used=value.get("used", 0),
            retracted=value.get("retracted", ""),
            authorship=tuple((own, others) for own, others in value.get("authorship", ())),
            form_run=FormRun(**value["form_run"]) if "form_run" in value else None,
            heard=Heard(**value.get("heard", {})),
            pointed=value.get("pointed", False),
            own=value.get("own", False),
            read=value.get("read", True),
        )


UNSHOWN: Final = TaskFacts(
    shown=False,
    intent=0,
    intent_words=(),
    arguments=(),
    worst=FOREIGN,
    signals=0,
    signal_reasons=(),
)
"""The facts of a call without a task."""
