"""What the command says about the model that serves, or that none does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from phylactery_agent.llm_client.config import model_config
from phylactery_agent.settings import AgentSettings
from phylactery_chassis.settings import load

from phylactery_cli.i18n.texts import Texts

STATIC: Mapping[str, str] = {"AGENT_MODEL_BASE_URL": "", "AGENT_MODEL_FALLBACK_BASE_URL": ""}
"""The agent's environment in static mode, whatever model the person's own names."""


def model_lines(texts: Texts) -> Iterator[str]:
    """Return which model an agent of this environment asks, and where. Raise StartError where it would not start."""
    config = model_config(load(AgentSettings))
    if config is None:
        yield f"{texts('model'):<9}{texts('model_none')}"
        return
    for endpoint, name in zip(config.endpoints, ("model", "model_fallback"), strict=False):
        said = texts("model_at", model=endpoint.model, url=endpoint.base_url)
        yield f"{texts(name):<9}{said}"
