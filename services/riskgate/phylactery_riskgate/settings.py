"""RiskGate's settings, from RISKGATE_… environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

from phylactery_chassis.settings import ServiceSettings
from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.keys.ring import SIGNING_FILE
from phylactery_riskgate.notices.config import NOTICES_FILE

_MAX_LOG_NAME = 128
_DAY_SECONDS, _WEEK_SECONDS = 86_400, 604_800


class RiskGateSettings(ServiceSettings):
    """Settings of one RiskGate process."""

    model_config = SettingsConfigDict(env_prefix="RISKGATE_")
    service: ClassVar[str] = "riskgate"

    data_dir: Path = Field(Path(".phylactery/riskgate"), description="data folder of this service")
    port: int = Field(50_052, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    bundle: Path = Field(default_factory=default_bundle_folder, description="folder of the policy bundle")
    bundle_or_active: bool = Field(
        default=False, description="use the active bundle if the named one cannot be used at start"
    )
    watch_bundle: bool = Field(default=False, description="take over a changed bundle folder while serving")
    shadow_bundle: Path | None = Field(None, description="folder of a bundle to evaluate in shadow mode")
    policy_keys: Path | None = Field(
        None, description="file of the public keys that may sign bundles; with it an unsigned bundle is refused"
    )
    bundle_poll_seconds: float = Field(
        1.0, gt=0, le=60, description="maximum age of the known active bundle for a decision"
    )
    keys_dir: Path = Field(
        default_factory=lambda data: data["data_dir"] / "keys", description="folder of the keys; replicas share one"
    )
    heads_dir: Path = Field(
        default_factory=lambda data: data["keys_dir"] / "heads",
        description="folder of the audit logs' signed heads, outside the database; replicas of a machine share it",
    )
    signing_key_file: Path | None = Field(
        None, description="signing keys elsewhere, such as a mounted secret; none is signing.json in keys_dir"
    )
    issuer: str = Field(
        "riskgate",
        pattern=r"^[A-Za-z0-9_.:-]{1,128}$",
        description="name in permits and receipts, and of the audit log",
    )
    instance: str = Field(
        "",
        pattern=r"^[A-Za-z0-9_.:-]{0,64}$",
        description="name of this process among those that share a database: its audit log is issuer/instance",
    )
    permit_ttl_seconds: int = Field(60, ge=1, le=3_600, description="how long a permit can be redeemed")
    decision_ttl_seconds: int = Field(
        3_600, ge=60, le=30 * 86_400, description="how long a decision that allows a call is given further permits"
    )
    retain_decisions_days: int = Field(
        0, ge=0, le=36_500, description="days after which records of calls are emptied; 0 keeps them permanently"
    )
    task_ttl_seconds: int = Field(86_400, ge=60, le=30 * 86_400, description="lifetime of a task that is not ended")
    task_max_observations: int = Field(500, ge=1, le=10_000, description="results one task takes")
    task_max_bytes: int = Field(
        16 * 1024 * 1024, ge=65_536, le=64 * 1024 * 1024, description="bytes of values one task keeps, before packing"
    )
    tasks_per_user: int = Field(1_000, ge=1, le=100_000, description="tasks one user may have open")
    notices: Path | None = Field(
        None, description="file of the sinks of notices; none is notices.yaml in the data folder, if there is one"
    )
    checkpoint_every: int = Field(64, ge=1, le=100_000, description="audit entries after which a head is signed")
    checkpoint_seconds: float = Field(60.0, gt=0, description="time after which a head is signed, if entries came")

    @model_validator(mode="after")
    def _log_name_fits(self) -> Self:
        longest = max(len(self.log_name), len(self.keys_log_name))
        if longest > _MAX_LOG_NAME:
            raise ValueError(
                f"RISKGATE_ISSUER and RISKGATE_INSTANCE make a log name of {longest} characters, and "
                f"{_MAX_LOG_NAME} fit: shorten one of them"
            )
        if self.log_name == self.keys_log_name:
            raise ValueError("that log name is reserved for `riskgate keys`: choose another RISKGATE_INSTANCE")
        return self

    @model_validator(mode="after")
    def _retained_as_long_as_needed(self) -> Self:
        if 0 < self.retain_decisions_days < self.retain_days_at_least:
            raise ValueError(
                f"RISKGATE_RETAIN_DECISIONS_DAYS is {self.retain_decisions_days}, and records are needed for "
                f"{self.retain_days_at_least} days: approvals and rejections for a week, a decision and a task as "
                "RISKGATE_DECISION_TTL_SECONDS and RISKGATE_TASK_TTL_SECONDS say"
            )
        return self

    @property
    def retain_days_at_least(self) -> int:
        """Return the number of days for which the record of a call may still be needed."""
        longest = max(_WEEK_SECONDS, self.decision_ttl_seconds, self.task_ttl_seconds)
        return longest // _DAY_SECONDS + 1

    @property
    def bundle_is_named(self) -> bool:
        """Return True if the bundle was set explicitly, so that no other may decide once the service has started."""
        return "bundle" in self.model_fields_set and not self.bundle_or_active

    @property
    def started_again(self) -> Mapping[str, str]:
        """Return extra variables for a restarted worker: it follows the bundle that was activated meanwhile."""
        return {"RISKGATE_BUNDLE_OR_ACTIVE": "true"}

    @property
    def log_name(self) -> str:
        """Return the name of the audit log that this process, and no other, writes."""
        return f"{self.issuer}/{self.instance}" if self.instance else self.issuer

    @property
    def keys_log_name(self) -> str:
        """Return the name of the audit log that `riskgate keys` writes; no serving process writes to it."""
        return f"{self.issuer}/keys"

    @property
    def notices_file(self) -> Path | None:
        """Return the file of the sinks, None if none is named and there is none."""
        usual = self.data_dir / NOTICES_FILE
        return self.notices or (usual if usual.exists() else None)

    @property
    def signing_file(self) -> Path:
        """Return the path of the signing key file."""
        return self.signing_key_file or self.keys_dir / SIGNING_FILE
