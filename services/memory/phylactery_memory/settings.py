"""Settings of the memory service, from MEMORY_… variables."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Self

from phylactery_chassis.settings import ServiceSettings, read_secret
from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from phylactery_memory.outputs.bucket import BucketTarget
from phylactery_memory.outputs.model import DAY_US, OutputRules
from phylactery_memory.transcript.model import DEFAULT_LIMITS, Limits

_DEFAULTS = OutputRules()


class MemorySettings(ServiceSettings):
    """The settings of the memory service."""

    model_config = SettingsConfigDict(env_prefix="MEMORY_")
    service: ClassVar[str] = "memory"

    data_dir: Path = Field(Path(".phylactery/memory"), description="data folder of this service")
    port: int = Field(50_053, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    evict_over_chars: int = Field(
        _DEFAULTS.evict_over_chars, ge=1, description="outputs with more characters than this are evicted"
    )
    rehydrate_under_chars: int = Field(
        _DEFAULTS.rehydrate_under_chars,
        ge=1,
        le=1_000_000,
        description="outputs of strictly fewer may return to a context whole; an answer holds a million at most",
    )
    max_output_bytes: int = Field(
        _DEFAULTS.max_bytes, ge=1, description="largest output in UTF-8 bytes; more is RESOURCE_EXHAUSTED"
    )
    output_quota_bytes: int = Field(
        _DEFAULTS.quota_bytes, ge=1, description="bytes one user's outputs may have; more is RESOURCE_EXHAUSTED"
    )
    output_ttl_days: int = Field(
        30, ge=0, le=3_650, description="how long an output is kept unless it has a ttl; 0 means permanently"
    )
    gc_seconds: float = Field(
        300,
        gt=0,
        description="interval of housekeeping, which removes expired outputs and computes missing vectors",
    )
    master_key_file: Path | None = Field(
        None,
        description="file of the keys that wrap the users' keys, the one in use first; none makes one in data_dir/keys",
    )
    object_store_url: str = Field(
        "",
        pattern=r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_.-]+)*/?)?$",
        description="s3://bucket/prefix of an S3-compatible store for the sealed texts of outputs; empty keeps them in "
        "the database. Each database needs a prefix of its own, and a copy of one too; the bucket keeps no versions",
    )
    object_store_endpoint: str = Field(
        "",
        pattern=r"^(https?://[^\s/@]+/?)?$",
        description="address of the store, https://host:port; empty means AWS, or AWS_ENDPOINT_URL",
    )
    object_store_region: str = Field("", max_length=64, description="its region; empty means AWS_REGION")
    object_store_key_id: str = Field(
        "",
        max_length=256,
        description="name of the access key; empty takes the standard AWS_… variables or the machine's role",
    )
    object_store_secret_file: Path | None = Field(None, description="file with the access key's secret")
    object_store_timeout_seconds: float = Field(
        20.0, gt=0, le=300, description="how long to wait for the object store before a call is UNAVAILABLE"
    )
    object_grace_hours: int = Field(
        24, ge=1, le=8_760, description="how old an object without an output is before it is removed as left over"
    )
    max_memories: int = Field(200_000, ge=1, description="memories one user may have; more are RESOURCE_EXHAUSTED")
    max_threads: int = Field(
        DEFAULT_LIMITS.threads, ge=1, description="threads of messages one user may have; another is RESOURCE_EXHAUSTED"
    )
    max_thread_messages: int = Field(
        DEFAULT_LIMITS.messages, ge=1, description="messages one thread may have; more are RESOURCE_EXHAUSTED"
    )
    erasure_log: Path | None = Field(
        None,
        description="erasure log, read at every start; none is erasures.jsonl in data_dir. Exclude it from restores",
    )
    embeddings_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="full address of an OpenAI-compatible endpoint, …/v1/embeddings; empty finds by words alone",
    )
    embeddings_model: str = Field("", max_length=128, description="model to name there; required with the address")
    embeddings_key_file: Path | None = Field(None, description="file with the endpoint's key; none sends none")
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

    @model_validator(mode="after")
    def _object_store_is_whole(self) -> Self:
        if bool(self.object_store_key_id) != (self.object_store_secret_file is not None):
            raise ValueError("MEMORY_OBJECT_STORE_KEY_ID and MEMORY_OBJECT_STORE_SECRET_FILE are set together or not")
        _ = self.bucket
        return self

    @property
    def bucket(self) -> BucketTarget | None:
        """Return the configured bucket, None if there is none. Raise ValueError if the secret's file cannot be read."""
        if not self.object_store_url:
            return None
        bucket, _, prefix = self.object_store_url.removeprefix("s3://").strip("/").partition("/")
        return BucketTarget(
            bucket,
            prefix,
            self.object_store_endpoint.rstrip("/"),
            self.object_store_region,
            self.object_store_key_id,
            read_secret(self.object_store_secret_file, "MEMORY_OBJECT_STORE_SECRET_FILE"),
            self.object_store_timeout_seconds,
        )

    @property
    def embeddings_key(self) -> str:
        """Return the endpoint's key, '' if it needs none. Raise ValueError if its file cannot be read."""
        return read_secret(self.embeddings_key_file, "MEMORY_EMBEDDINGS_KEY_FILE")

    @property
    def output_rules(self) -> OutputRules:
        """Return the output thresholds and limits."""
        return OutputRules(
            evict_over_chars=self.evict_over_chars,
            rehydrate_under_chars=self.rehydrate_under_chars,
            max_bytes=self.max_output_bytes,
            quota_bytes=self.output_quota_bytes,
            ttl_us=self.output_ttl_days * DAY_US,
        )

    @property
    def message_limits(self) -> Limits:
        """Return the limits on a user's threads and messages."""
        return Limits(self.max_threads, self.max_thread_messages)

    @property
    def keys_dir(self) -> Path:
        """The folder of the generated master key, used if no key file is configured."""
        return self.data_dir / "keys"
