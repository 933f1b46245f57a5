"""Fixtures available to every test folder."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.support import tiers
from tests.support.databases.compiled import share_compiled_statements
from tests.support.databases.schema import write_down_schemas
from tests.support.processes.forks import offer_forks, share_run
from tests.support.processes.guardian import guard_run, run_folder
from tests.support.servers import postgres
from tests.support.tiers import (  # noqa: F401 - hooks of this conftest
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_ignore_collect,
)

gc.disable()  # until the tests are collected: see pytest_collection

# gRPC's C core notes every closed connection on standard error; it reads this when it is imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# Files of tests are private, as those of the product: no service reads a secret that others may read.
os.umask(0o077)

# A process with threads is not forked, and numpy's arithmetic is small here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_COLLECTED_EVERY = 20_000
"""New objects between two rounds of the garbage collector."""
_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 8 * 2**30
"""What is free where files are in memory: a run of the slow tests keeps at most half of it there."""


def _keep_files_in_memory() -> None:
    """Let temporary files be in memory where there is room: nothing waits for a disk, and no test cuts the power.

    A temporary folder that the environment names stays. Programs are installed and run in temporary folders. The file
    system may have a size, and the memory that it takes may be less: what is full ends processes.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return
    runs_programs = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and min(shutil.disk_usage(_MEMORY).free, _available_bytes()) > _ROOM_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(run_folder(_MEMORY))  # which somebody may have asked for already


def _available_bytes() -> int:
    """Return how much memory programs may still take."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


_keep_files_in_memory()

# Tests name their model themselves: the one that the caller uses is not asked.
for _name in [name for name in os.environ if name.startswith(("PHYLACTERY_MODEL", "AGENT_MODEL", "AGENT_INTERPRETER"))]:
    del os.environ[_name]

# No example fails for the machine's load. Every run tries the same ones, so that a run says something about the change
# it is for; `pytest --hypothesis-profile explore` looks for new ones.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeat", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeat")


def _leave_out_constants_of_modules() -> None:
    """Let examples under "repeat" depend on the test alone.

    Hypothesis also tries the constants of the project's modules that happen to be imported by then, and those differ
    with the tests that a worker was given before. There is no setting for it.
    """
    own = getattr(providers, "_get_local_constants", None)
    none = getattr(providers, "_local_constants", None)  # an empty set of each type as long as nothing is gathered
    if own is not None and none is not None:
        providers._get_local_constants = lambda: none if settings.default.derandomize else own()


_leave_out_constants_of_modules()

write_down_schemas()
share_compiled_statements()


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run: what it starts ends with it, also if it is killed."""
    if hasattr(config, "workerinput"):
        share_run(config.workerinput["forks"])
    else:
        guard_run()
    tiers.pytest_configure(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let the workers of pytest-xdist fork programs from one process."""
    node.workerinput["forks"] = offer_forks()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and leave out of its later rounds what was collected.

    Items and modules are millions of objects that stay until the end, and every round of the oldest generation would
    look at each of them. The rounds come less often than Python's own 700 objects, too: services that are started and
    stopped all the time make many that live on for a while, and a round over them finds next to nothing.
    """
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_COLLECTED_EVERY)
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Return the argument's name as the id of a long value.

    A document that a test builds is not the same in two workers (a PDF has its time of creation), and an id has to be.
    """
    return argname if isinstance(val, str | bytes) and len(val) > 200 else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The measuring data next to the checkout; a test that needs it is skipped where it is absent."""
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
