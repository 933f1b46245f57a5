"""A start over a PostgreSQL that is not up yet, recovers, or has no connection left: it waits, and then says why."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from phylactery_chassis.db import database as waiting
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError

from tests.support.processes.forks import Forked
from tests.support.servers.postgres import Cluster, create_database, execute, running

PACKAGE = "phylactery_memory"
ENDS_SECONDS = 60.0


@contextmanager
def opened(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        yield database
    finally:
        database.close()


@pytest.fixture
def pausing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], list[float]]:
    """Make what happens at the first pause, instead of the pause."""

    def at_first(does: Callable[[], object]) -> list[float]:
        paused: list[float] = []

        def sleep(seconds: float) -> None:
            paused.append(seconds)
            if len(paused) == 1:
                does()

        monkeypatch.setattr(waiting.time, "sleep", sleep)
        return paused

    return at_first


class Refusing:
    """A server that refuses every connection with a FATAL error, as PostgreSQL does before it is up."""

    def __init__(self, code: str, said: str) -> None:
        fields = {"S": "FATAL", "V": "FATAL", "C": code, "M": said}
        body = b"".join(key.encode() + value.encode() + b"\0" for key, value in fields.items()) + b"\0"
        self._answer = b"E" + struct.pack("!i", len(body) + 4) + body
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql+psycopg://u@127.0.0.1:{self._socket.getsockname()[1]}/x?sslmode=disable"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.recv(4_096)
                connection.sendall(self._answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def refusing() -> Iterator[Callable[[str, str], Refusing]]:
    servers: list[Refusing] = []

    def one(code: str, said: str) -> Refusing:
        servers.append(Refusing(code, said))
        return servers[-1]

    yield one
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("57P03", "the database system is starting up"),
        ("57P03", "the database system is not yet accepting connections"),
        ("57P03", "the database system is in recovery mode"),
        ("57P03", "the database system is shutting down"),
        ("53300", "sorry, too many clients already"),
        ("53300", "remaining connection slots are reserved for roles with the SUPERUSER attribute"),
        ("53300", 'too many connections for role "u"'),
        ("57P03", "el sistema de base de datos está iniciándose"),
        ("57P03", "das Datenbanksystem startet"),
    ],
)
def test_a_server_that_is_not_ready_is_waited_for_and_then_said_to_be_so(
    refusing: Callable[[str, str], Refusing], code: str, said: str
) -> None:
    with opened(refusing(code, said).url) as database, pytest.raises(StartError) as caught:
        database.migrate(PACKAGE, wait_seconds=0.3)
    assert "cannot be the database after 0.3 seconds" in str(caught.value)
    assert said in str(caught.value)
    assert "MEMORY_DATABASE_URL" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("28P01", 'password authentication failed for user "u"'),
        ("28000", 'no pg_hba.conf entry for host "127.0.0.1", user "u", database "x", no encryption'),
        ("28000", 'role "u" does not exist'),
        ("28000", 'role "u" is not permitted to log in'),
        ("3D000", 'database "x" does not exist'),
        ("42501", 'permission denied for database "x"'),
    ],
)
def test_what_waiting_does_not_mend_is_said_at_once(
    refusing: Callable[[str, str], Refusing],
    pausing: Callable[[Callable[[], object]], list[float]],
    code: str,
    said: str,
) -> None:
    paused = pausing(lambda: None)
    with opened(refusing(code, said).url) as database, pytest.raises(StartError) as caught:
        database.migrate(PACKAGE)
    assert paused == []
    assert "cannot be the database (connection failed" in str(caught.value)
    assert said in str(caught.value)


def test_nothing_listens_and_no_password_is_repeated() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for host in ("127.0.0.1", "localhost", "no-such-host.invalid"):
        with opened(f"postgresql+psycopg://u:hunter2@{host}:{port}/x") as database:
            with pytest.raises(StartError) as caught:
                database.migrate(PACKAGE, wait_seconds=0.3)
            assert "after 0.3 seconds" in str(caught.value)
            assert "hunter2" not in str(caught.value)


def test_a_file_that_cannot_be_the_database_is_not_waited_for(
    tmp_path: Path, pausing: Callable[[Callable[[], object]], list[float]]
) -> None:
    paused = pausing(lambda: None)
    (tmp_path / "x.db").write_bytes(b"this was never a database" * 400)
    with opened(f"sqlite:///{tmp_path / 'x.db'}") as database, pytest.raises(StartError):
        database.migrate(PACKAGE)
    assert paused == []


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[Cluster]:
    with running() as one:
        yield one


@pytest.mark.slow
def test_a_start_goes_on_once_the_server_is_up(
    own_cluster: Cluster, pausing: Callable[[Callable[[], object]], list[float]]
) -> None:
    url = create_database(own_cluster.url, "not_up")
    own_cluster.stop()
    paused = pausing(own_cluster.start)
    with opened(url) as database:
        database.migrate(PACKAGE)
        database.migrate_at_start(PACKAGE)
    assert paused


@pytest.mark.slow
def test_a_start_goes_on_once_a_connection_is_free(
    own_cluster: Cluster, pausing: Callable[[Callable[[], object]], list[float]]
) -> None:
    create_database(own_cluster.url, "full")
    execute(own_cluster.url, "CREATE ROLE one LOGIN CONNECTION LIMIT 0")
    execute(own_cluster.url, 'ALTER DATABASE "full" OWNER TO one')
    paused = pausing(lambda: execute(own_cluster.url, "ALTER ROLE one CONNECTION LIMIT 5"))
    with opened(own_cluster.url.format(database="full").replace("postgres@", "one@")) as database:
        database.migrate(PACKAGE)
    assert len(paused) == 1


@pytest.mark.slow
def test_every_service_waits_for_its_server_as_a_process(own_cluster: Cluster, tmp_path: Path) -> None:
    """Over an empty database each then says what to run, which shows that it went on."""
    services = ("riskgate", "memory", "agent")
    urls = {name: create_database(own_cluster.url, f"process_{name}") for name in services}
    own_cluster.stop()
    logs = {name: tmp_path / f"{name}.log" for name in services}
    started = {
        name: Forked(
            f"phylactery_{name}",
            environment={
                **os.environ,
                f"{name.upper()}_DATA_DIR": str(tmp_path / name),
                f"{name.upper()}_DATABASE_URL": urls[name],
                f"{name.upper()}_PORT": "0",
            },
            out=logs[name],
            err=logs[name],
        )
        for name in services
    }
    try:
        for name in services:
            while "waiting for the database" not in (logs[name].read_text() if logs[name].exists() else ""):
                assert started[name].poll() is None, logs[name].read_text()
                time.sleep(0.05)
    finally:
        own_cluster.start()
    for name in services:
        assert started[name].wait(ENDS_SECONDS) == 2
        assert logs[name].read_text().rstrip().endswith(f"run: python -m phylactery_{name} migrate")
