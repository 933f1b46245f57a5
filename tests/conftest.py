"""Fixtures every test folder may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres

# gRPC's C core notes every closed connection on standard error; it reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The measuring data beside the checkout; a test that needs it is skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PHYLACTERY_DATA_DIR", default))
    if not folder.is_dir():
        pytest.skip(f"no measuring data at {folder}; set PHYLACTERY_DATA_DIR")
    return folder


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A throw-away PostgreSQL cluster's URL with {database} to fill in."""
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with postgres.cluster() as url:
        yield url
