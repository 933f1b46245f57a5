"""A temporary PostgreSQL cluster on a Unix socket, started by the tests and never as root."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phylactery_chassis.db.database import Database
from phylactery_chassis.util.ids import new_id

from tests.support.processes.guardian import cluster_prefix

ACCOUNT = "postgres"
_LONGEST_PLACE = 60
_MOST_BRIEF = 8
_SMALL = "-c max_wal_size=64MB -c min_wal_size=32MB -c wal_level=minimal -c max_wal_senders=0"
"""How a cluster keeps little of what it wrote: its files may be in memory."""
_brief: dict[str, deque[str]] = {}
"""The databases of each cluster that are dropped after a few more, the oldest first."""


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs, None if it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class Cluster:
    """A PostgreSQL cluster in its own folder; url has a placeholder {database}."""

    def __init__(self, folder: Path, programs: Path, *, sync: bool = False) -> None:
        self.url = f"postgresql+psycopg://{ACCOUNT}@/{{database}}?host={folder}"
        self._folder, self._programs, self._data = folder, programs, folder / "data"
        self._as_account: list[str] = []
        self._sync = sync
        if os.getuid() == 0:
            # not through subprocess's own options, which would fork a process with gRPC's threads
            self._as_account = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
            shutil.chown(folder, ACCOUNT, ACCOUNT)

    def create(self) -> None:
        """Create the cluster's files."""
        self._run("initdb", "-A", "trust", "-U", ACCOUNT, "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        """Start the cluster, and wait until it accepts connections.

        Without ``sync`` it never syncs: no test cuts the machine's power. Its shared memory is files in its folder, so
        that nothing stays of a cluster that is killed.
        """
        options = f"-k {self._folder} -h '' -c dynamic_shared_memory_type=mmap {_SMALL}" + ("" if self._sync else " -F")
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the cluster; "immediate" simulates a crash, "fast" ends every session first."""
        self._run("pg_ctl", "-m", mode, "-w", "stop")

    def _run(self, program: str, *options: str) -> None:
        done = subprocess.run(
            [*self._as_account, str(self._programs / program), "-D", str(self._data), *options],
            check=False,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert done.returncode == 0, f"{program}: {done.stderr.decode()}"


def _place() -> str:
    """Return a folder for the cluster: in the tests' temporary folder, if PostgreSQL can use that.

    A socket's path has at most 107 bytes, and the cluster's account must have access to every folder above it.
    """
    place = Path(tempfile.gettempdir()).resolve()
    passable = os.getuid() != 0 or all(one.stat().st_mode & 0o001 for one in (place, *place.parents))
    return str(place) if passable and len(str(place)) <= _LONGEST_PLACE else "/tmp"


@contextmanager
def running(*, sync: bool = False) -> Iterator[Cluster]:
    """Run a cluster during the block."""
    programs = binaries()
    assert programs is not None, "ask binaries() first"
    folder = Path(tempfile.mkdtemp(prefix=cluster_prefix(), dir=_place()))
    try:
        one = Cluster(folder, programs, sync=sync)
        one.create()
        one.start()
        try:
            yield one
        finally:
            one.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def cluster() -> Iterator[str]:
    """Run a cluster during the block and yield a URL with a placeholder {database}."""
    with running() as one:
        yield one.url


def create_database(url: str, name: str, template: str = "template1") -> str:
    """Create a database in a cluster, which stays as long as the cluster, and return its URL."""
    execute(url, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return url.format(database=name)


def brief_database(url: str, package: str = "") -> str:
    """Create a database for one test, with the schema of a service's package if one is named, and return its URL.

    An empty one is 7 MB. It is dropped when this process has made a few more, by when whoever used it is gone: at the
    end of the test, services that are stopped after the fixture would miss it.
    """
    made, name = _brief.setdefault(url, deque()), new_id("brief")
    created = create_database(url, name, _migrated(url, package) if package else "template1")
    made.append(name)
    if len(made) > _MOST_BRIEF:
        execute(url, f'DROP DATABASE IF EXISTS "{made.popleft()}" WITH (FORCE)')
    return created


@functools.cache
def _migrated(url: str, package: str) -> str:
    """Return the name of a database with the schema of a package: to migrate takes five times as long as to copy."""
    name = f"migrated_{package}"
    database = Database(create_database(url, name))
    database.migrate(package)
    database.close()  # a database is only copied while nobody is connected to it
    return name


def execute(url: str, statement: str) -> None:
    """Run a statement in a cluster as its superuser."""
    import psycopg

    with psycopg.connect(url.format(database=ACCOUNT).replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement.encode())
