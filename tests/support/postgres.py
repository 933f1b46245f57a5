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


def binaries() -> Path | None:
    """Answers the folder of PostgreSQL's programs, None where it is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


@contextmanager
def cluster() -> Iterator[str]:
    """Runs a cluster for the block and answers a URL with a placeholder {database}."""
    programs = binaries()
    assert programs is not None, "ask binaries() first"
    folder = Path(tempfile.mkdtemp(prefix="phylactery-pg-"))
    account = {"user": ACCOUNT, "group": ACCOUNT} if os.getuid() == 0 else {}
    if account:
        shutil.chown(folder, ACCOUNT, ACCOUNT)
    data = folder / "data"

    def run(*command: str) -> None:
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **account)

    control = str(programs / "pg_ctl")
    try:
        run(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", ACCOUNT, "--no-sync", "-E", "UTF8")
        run(control, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", f"-k {folder} -h ''", "start")
        try:
            yield f"postgresql+psycopg://{ACCOUNT}@/{{database}}?host={folder}"
        finally:
            run(control, "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def create_database(url: str, name: str) -> str:
    """Creates a database in a cluster and answers its URL."""
    import psycopg

    with psycopg.connect(url.format(database=ACCOUNT).replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.format(database=name)
