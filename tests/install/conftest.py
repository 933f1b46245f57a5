"""Installations are tried only where something they depend on has changed, or where they are asked for."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.changed import day_ago
from tests.support.packages.inputs import changed_inputs


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
