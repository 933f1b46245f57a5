"""The request to hand a conversation to a person, as a graph ends its turn with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypedDict, cast, get_args

EscalationPolicy = Literal["keyword", "timeout", "sentiment", "llm_intent", "completion", "request"]
MAX_REASON: Final = 500
"""Maximum length of a reason, in characters; a longer one is cut."""
MAX_FORM_STATE: Final = 20_000
"""Maximum length of a form's state as JSON, in characters; a longer one is left out."""


class EscalationState(TypedDict, total=False):
    """The same request as plain JSON: the optional key ``escalation`` of a graph's state when the turn ends."""

    policy: str
    reason: str
    form_id: str
    form_state: str


@dataclass(frozen=True, slots=True)
class EscalationRequest:
    """A request for a person, written in the transaction that ends the turn.

    reason is for the handler. form_state is JSON without sensitive values, because handlers see it.
    """

    policy: EscalationPolicy
    reason: str = ""
    form_id: str = ""
    form_state: str = field(default="", repr=False)

    @classmethod
    def of(cls, state: EscalationState | dict[str, Any] | None) -> EscalationRequest | None:
        """Return the request that a graph's state holds, or None. Raise ValueError for an unknown policy."""
        if not state:
            return None
        policy = state.get("policy", "")
        if policy not in get_args(EscalationPolicy):
            raise ValueError(f"'{policy}' is not an escalation policy; known: {', '.join(get_args(EscalationPolicy))}")
        form_state = str(state.get("form_state", ""))
        return cls(
            cast("EscalationPolicy", policy),
            str(state.get("reason", ""))[:MAX_REASON],
            str(state.get("form_id", "")),
            form_state if len(form_state) <= MAX_FORM_STATE else "",
        )
