"""The built TypeScript client, once for all of its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.packages.node import installed


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("typescript") / "client")
