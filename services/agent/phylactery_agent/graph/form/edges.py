"""Routing functions of the form graph, under the names of ADR 47.

They are those of the library, so that stories and simulations take the same way as the compiled graph.
"""

from phylactery_forms.dialogue.routes import (
    route_after_correction_check,
    route_after_escalation_check,
    route_after_off_topic_check,
    route_after_validate,
)

__all__ = [
    "route_after_correction_check",
    "route_after_escalation_check",
    "route_after_off_topic_check",
    "route_after_validate",
]
