"""Opens the models the settings name; without any, the library that speaks to them is not even imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock

from phylactery_agent.models.config import model_config
from phylactery_agent.models.settings import ModelSettings

if TYPE_CHECKING:
    from phylactery_agent.models.asking import Models

_log = get_logger("models")


def open_models(settings: ModelSettings, clock: Clock) -> Models | None:
    """Answers the models; None is static mode. Nothing is connected yet. Raises StartError."""
    config = model_config(settings)
    if config is None:
        return None
    from phylactery_agent.models.asking import Models  # late: it takes a second to import

    return Models(config, clock=clock)


async def tell_models(models: Models | None) -> None:
    """Writes to the log which models serve, once the agent starts."""
    if models is None:
        _log.info("static mode: no model is configured")
        return
    for place, endpoint in enumerate(models.config.endpoints):
        _log.info("fallback model" if place else "model", model=endpoint.model, endpoint=endpoint.base_url)
