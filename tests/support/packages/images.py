"""The Dockerfile and the compose file as data, read without a container engine."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
COMPOSE = ROOT / "docker-compose.yml"


@dataclass(frozen=True)
class Stage:
    """One stage: its name, its base and its instructions."""

    name: str
    base: str
    instructions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Image:
    """A stage with the stages of this file it is based on, lowest first."""

    stages: tuple[Stage, ...]

    def every(self, operation: str) -> list[str]:
        """Return the arguments of each such instruction, in order."""
        return [rest for stage in self.stages for name, rest in stage.instructions if name == operation]

    @property
    def env(self) -> dict[str, str]:
        """Return the variables set by ENV."""
        return dict(pair.split("=", 1) for line in self.every("ENV") for pair in shlex.split(line))


def stages() -> dict[str, Stage]:
    """Read the Dockerfile."""
    found: dict[str, Stage] = {}
    text = DOCKERFILE.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        operation, _, rest = line.strip().partition(" ")
        if not operation or operation.startswith("#"):
            continue
        if operation == "FROM":
            base, _, name = rest.partition(" AS ")
            found[name] = Stage(name, base, ())
        else:
            last = next(reversed(found.values()))
            found[last.name] = Stage(last.name, last.base, (*last.instructions, (operation, rest.strip())))
    return found


def image(name: str) -> Image:
    """Return a stage with its base stages."""
    known, chain = stages(), []
    while name in known:
        chain.append(known[name])
        name = known[name].base
    return Image(tuple(reversed(chain)))


def compose() -> dict[str, Any]:
    """Read the compose file."""
    content: dict[str, Any] = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    return content


def resolved(text: str) -> str:
    """Return a value as compose interpolates it when no variable is set."""
    return re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", text)
