"""A throw-away PostgreSQL cluster on a Unix socket, started by the tests themselves and never as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ACCOUNT = "postgres"
_LONGEST_PLACE = 60


def binaries() -> Path | None:
    """Return the folder of PostgreSQL's programs, None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


class Cluster:
    """A cluster of PostgreSQL in a folder of its own; url has a placeholder {database}."""

    def __init__(self, folder: Path, programs: Path, *, sync: bool = False) -> None:
        self.url = f"postgresql+psycopg://{ACCOUNT}@/{{database}}?host={folder}"
        self._folder, self._programs, self._data = folder, programs, folder / "data"
        self._as_account: list[str] = []
        self._sync = sync
        if os.getuid() == 0:
            # not by subprocess itself, which then forks a process full of gRPC's threads where it would else not
            self._as_account = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups"]
            shutil.chown(folder, ACCOUNT, ACCOUNT)

    def create(self) -> None:
        """Make the cluster's files."""
        self._run("initdb", "-A", "trust", "-U", ACCOUNT, "--no-sync", "-E", "UTF8")

    def start(self) -> None:
        """Start it, and wait until it takes connections.

        Unless it was made to, it syncs nothing: no test cuts the machine's power.
        """
        options = f"-k {self._folder} -h ''" + ("" if self._sync else " -F")
        self._run("pg_ctl", "-w", "-l", str(self._folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop it; "immediate" is a crash, "fast" ends every session first."""
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
    """Return where a cluster's folder may lie: the tests' own place, where PostgreSQL can use it.

    The path of a socket has 107 bytes at most, and the cluster's account must get through every folder above it.
    """
    place = Path(tempfile.gettempdir()).resolve()
    passable = os.getuid() != 0 or all(one.stat().st_mode & 0o001 for one in (place, *place.parents))
    return str(place) if passable and len(str(place)) <= _LONGEST_PLACE else "/tmp"


@contextmanager
def running(*, sync: bool = False) -> Iterator[Cluster]:
    """Run a cluster for the block."""
    programs = binaries()
    assert programs is not None, "ask binaries() first"
    folder = Path(tempfile.mkdtemp(prefix="phylactery-pg-", dir=_place()))
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
    """Run a cluster for the block and return a URL with a placeholder {database}."""
    with running() as one:
        yield one.url


def create_database(url: str, name: str) -> str:
    """Create a database in a cluster and return its URL."""
    import psycopg

    with psycopg.connect(url.format(database=ACCOUNT).replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.format(database=name)
