"""Opening of the models that the settings name. Without any, the client library is not even imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock

from phylactery_agent.llm_client.config import model_config
from phylactery_agent.llm_client.settings import ModelSettings

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models

_log = get_logger("models")


def open_models(settings: ModelSettings, clock: Clock) -> Models | None:
    """Return the models without connecting, or None for static mode. Raise StartError."""
    config = model_config(settings)
    if config is None:
        return None
    from phylactery_agent.llm_client.router import Models  # late: it takes a second to import

    return Models(config, clock=clock)


async def tell_models(models: Models | None) -> None:
    """Log the configured models when the agent starts."""
    if models is None:
        _log.info("static mode: no model is configured")
        return
    for place, endpoint in enumerate(models.config.endpoints):
        _log.info("fallback model" if place else "model", model=endpoint.model, endpoint=endpoint.base_url)
