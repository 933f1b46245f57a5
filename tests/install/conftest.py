"""Installations are tried only where something they depend on has changed, or where they are asked for."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.changed import day_ago
from tests.support.packages.inputs import changed_inputs
from tests.support.packages.installing import Alone, build_wheels, install


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every distribution's wheel, by name; what installs them is one group, so they are built once."""
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def environment_of(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the environment with one distribution alone, installed once: its programs write elsewhere."""
    return cache(lambda name: install(name, wheels, tmp_path_factory.mktemp("environment") / "env"))


@pytest.fixture
def alone(environment_of: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Alone]:
    """Give one distribution alone, with a working folder of its own."""

    def give(name: str) -> Alone:
        elsewhere = tmp_path / name
        elsewhere.mkdir()
        return Alone(environment_of(name), elsewhere)

    return give


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip them in a run of the whole tier if nothing that matters differs from the last commit that is a day old."""
    installing = [item for item in items if item.get_closest_marker("installs")]
    if not installing or not config.option.tier or any("install" in part for part in config.args):
        return
    try:
        commit = day_ago()
        changed = changed_inputs(commit)
    except (subprocess.CalledProcessError, OSError):
        return  # no history to compare with
    if not changed:
        reason = f"what an installation depends on is as in {commit[:12]}; `make test-slow PKG=install` tries it all"
        for item in installing:
            item.add_marker(pytest.mark.skip(reason=reason))
