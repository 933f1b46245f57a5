"""Settings of the memory service, from MEMORY_… variables."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from phylactery_chassis.settings import ServiceSettings
from pydantic import Field
from pydantic_settings import SettingsConfigDict

from phylactery_memory.domain.outputs import OutputRules

_DEFAULTS = OutputRules()


class MemorySettings(ServiceSettings):
    """What the memory service can be told."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_")
    service: ClassVar[str] = "memory"

    data_dir: Path = Field(Path(".phylactery/memory"), description="folder for everything this service keeps")
    port: int = Field(50_053, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    evict_over_chars: int = Field(
        _DEFAULTS.evict_over_chars, ge=1, description="outputs of strictly more characters are kept here"
    )
    rehydrate_under_chars: int = Field(
        _DEFAULTS.rehydrate_under_chars, ge=1, description="outputs of strictly fewer may return to a context whole"
    )
    max_output_bytes: int = Field(
        _DEFAULTS.max_bytes, ge=1, description="largest output in UTF-8 bytes; more is RESOURCE_EXHAUSTED"
    )

    @property
    def output_rules(self) -> OutputRules:
        """Answers the thresholds as the domain takes them."""
        return OutputRules(self.evict_over_chars, self.rehydrate_under_chars, self.max_output_bytes)
