"""Settings of the memory service, from MEMORY_… variables."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from phylactery_chassis.settings import ServiceSettings, read_secret
from pydantic import Field, model_validator
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
    max_memories: int = Field(200_000, ge=1, description="memories one user may have; more are RESOURCE_EXHAUSTED")
    embeddings_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="full address of an OpenAI-compatible endpoint, …/v1/embeddings; empty finds by words alone",
    )
    embeddings_model: str = Field("", max_length=128, description="model to name there; required with the address")
    embeddings_key_file: Path | None = Field(None, description="file that holds the endpoint's key; none sends none")
    embeddings_timeout_seconds: float = Field(
        2.0, gt=0, le=60, description="how long to wait for vectors before words alone must do"
    )

    @model_validator(mode="after")
    def _embeddings_are_whole(self) -> Self:
        if self.embeddings_url and not self.embeddings_model:
            raise ValueError("MEMORY_EMBEDDINGS_URL is set: name the model in MEMORY_EMBEDDINGS_MODEL")
        if self.embeddings_key_file is not None:
            _ = self.embeddings_key
        return self

    @property
    def embeddings_key(self) -> str:
        """Answers the endpoint's key, empty where it needs none. Raises ValueError where its file cannot be read."""
        return read_secret(self.embeddings_key_file, "MEMORY_EMBEDDINGS_KEY_FILE")

    @property
    def output_rules(self) -> OutputRules:
        """Answers the thresholds as the domain takes them."""
        return OutputRules(self.evict_over_chars, self.rehydrate_under_chars, self.max_output_bytes)
