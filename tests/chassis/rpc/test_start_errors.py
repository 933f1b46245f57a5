"""Start errors as a person sees them: one sentence that names the problem and the remedy, exit code 2.

Separate processes run what `python -m phylactery_<service>` runs; tests that need an unprivileged user drop privileges.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from phylactery_chassis.auth.identity import Role
from phylactery_chassis.auth.tokens import add_token

from tests.support.processes import commands
from tests.support.processes.commands import Finished

SERVICES = ("agent", "memory", "riskgate")
GARBAGE = b"this was never a database\x00\xff" * 400
SECRET = "hunter2-in-the-password"
_PLAIN = """
import ctypes
data = (ctypes.c_uint32 * 6)()
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
libc = ctypes.CDLL(None, use_errno=True)
assert libc.capget(header, data) == 0
for place in range(3):
    data[place] &= ~0b110
assert libc.capset(header, data) == 0
"""
"""Gives up the capabilities to pass over file permissions: CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
_BRIEF = """
from phylactery_chassis.db.database import Database
Database.migrate.__kwdefaults__["wait_seconds"] = 2.0
"""
"""Waits for a database for two seconds instead of thirty."""
_RUN = """
import runpy
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""

pytestmark = pytest.mark.slow


class Launch:
    """Starts one service that must not start."""

    def __init__(self, service: str, folder: Path) -> None:
        self.service, self.prefix, self.data = service, service.upper(), folder / "data"
        self._before = ""

    @property
    def database(self) -> Path:
        return self.data / f"{self.service}.db"

    def without_superuser(self) -> None:
        """Make the process one that file permissions hold for, also where the tests run as root."""
        self._before = _PLAIN

    def waits_briefly(self) -> None:
        """Make it give up a database that does not answer sooner than it would."""
        self._before = _BRIEF

    def refused(self, *, after_it_began: bool = False, **variables: object) -> str:
        """Return what the process said. Raise AssertionError unless it is one sentence and exit code 2.

        One that began before it failed may have written to its log until then.
        """
        env = {name: value for name, value in os.environ.items() if not name.startswith(("AGENT_", "MEMORY_", "RISK"))}
        env |= {f"{self.prefix}_DATA_DIR": str(self.data), f"{self.prefix}_PORT": "0"}
        env |= {f"{self.prefix}_{name}": str(value) for name, value in variables.items()}
        done = self._run(env)
        assert done.stdout == ""
        assert SECRET not in done.stderr
        *logged, said = done.stderr.splitlines()
        assert not logged or after_it_began, done.stderr
        assert not [line for line in logged if json.loads(line)["level"] not in {"info", "warning"}]
        assert said.startswith(f"{self.service}: ")
        assert (done.returncode, len(said) < 500) == (2, True), done.stderr
        return said

    def _run(self, env: Mapping[str, str]) -> Finished:
        module = f"phylactery_{self.service}"
        return commands.run("-c", self._before + _RUN.format(module=module), environment=env)


@pytest.fixture(params=SERVICES)
def launch(request: pytest.FixtureRequest, tmp_path: Path) -> Launch:
    """Every service in turn."""
    return Launch(request.param, tmp_path)


@pytest.fixture
def launch_of(tmp_path: Path) -> Callable[[str], Launch]:
    """One service by name."""
    return lambda service: Launch(service, tmp_path)


def test_a_folder_where_the_database_should_be_is_named(launch: Launch):
    launch.database.mkdir(parents=True)
    said = launch.refused()
    assert str(launch.database) in said
    assert f"{launch.prefix}_DATA_DIR" in said


def test_a_database_file_of_garbage_is_named_and_left_alone(launch: Launch):
    launch.data.mkdir()
    launch.database.write_bytes(GARBAGE)
    said = launch.refused()
    assert f"{launch.database} cannot be the database (file is not a database)" in said
    assert "restore a backup" in said
    assert launch.database.read_bytes() == GARBAGE


def test_a_database_that_is_damaged_inside_is_named(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    launch.data.mkdir()
    with sqlite3.connect(launch.database) as connection:
        connection.execute(f"CREATE TABLE phylactery_{launch.service}_version (version_num TEXT)")
    connection.close()
    damaged = bytearray(launch.database.read_bytes())
    damaged[100:] = b"\xff" * (len(damaged) - 100)
    launch.database.write_bytes(damaged)
    assert f"{launch.database} cannot be the database" in launch.refused()


def test_a_database_of_a_newer_program_says_so(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    launch.data.mkdir()
    with sqlite3.connect(launch.database) as connection:
        connection.execute(f"CREATE TABLE phylactery_{launch.service}_version (version_num TEXT)")
        connection.execute(f"INSERT INTO phylactery_{launch.service}_version VALUES ('9999')")
    connection.close()
    said = launch.refused()
    assert "revision 9999" in said
    assert "start the newer program" in said


def test_a_database_without_permission_is_named(launch: Launch):
    launch.data.mkdir()
    launch.database.touch()
    launch.database.chmod(0)
    launch.without_superuser()
    assert f"{launch.database} cannot be the database" in launch.refused()


def test_a_data_folder_that_cannot_be_written_is_named(launch: Launch):
    launch.data.mkdir(mode=0o500)
    launch.without_superuser()
    said = launch.refused()
    assert f"{launch.data} cannot be the data folder (Permission denied)" in said
    assert f"{launch.prefix}_DATA_DIR" in said


def test_a_data_folder_that_is_a_file_is_named(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    launch.data.write_text("a file")
    said = launch.refused()
    assert f"{launch.data} cannot be the data folder (File exists)" in said
    assert f"{launch.prefix}_DATA_DIR" in said


def test_a_file_where_the_spans_folder_should_be_is_named(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    launch.data.mkdir()
    (launch.data / "spans").write_text("a file")
    said = launch.refused()
    assert str(launch.data / "spans") in said
    assert f"{launch.prefix}_DATA_DIR" in said


def test_a_database_that_does_not_answer_is_named_without_its_password(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    launch.waits_briefly()
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        port = nobody.getsockname()[1]
        address = f"postgresql+psycopg://ana:{SECRET}@127.0.0.1:{port}/x"
        said = launch.refused(after_it_began=True, DATABASE_URL=address)  # it logs that it waits
    assert f"127.0.0.1:{port}/x" in said
    assert f"{launch.prefix}_DATABASE_URL" in said


def test_a_port_that_is_taken_is_named(launch: Launch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = launch.refused(after_it_began=launch.service == "riskgate", PORT=port)
    assert f"127.0.0.1:{port} (Address already in use)" in said
    assert f"{launch.prefix}_PORT" in said


def test_an_address_of_another_machine_is_named(launch_of: Callable[[str], Launch]):
    launch = launch_of("memory")
    tokens = launch.data.parent / "tokens.yaml"
    add_token(tokens, subject="ana", tenant="acme", roles=[Role.CALLER])
    said = launch.refused(HOST="192.0.2.1", IDENTITY_MODE="tokens", TOKENS_FILE=tokens, ALLOW_PLAINTEXT="true")
    assert "192.0.2.1:0 (Cannot assign requested address)" in said
    assert "MEMORY_HOST" in said


TOKENS = {
    "missing": None,
    "no YAML": b"tokens: [",
    "no UTF-8": b"\xff\xfe\x00",
    "no tokens": b"{}",
    "a token in the clear": f"tokens: [{{hash: {SECRET}, subject: ana, tenant: acme, roles: [caller]}}]".encode(),
    "an unknown role": b"tokens: [{hash: 'sha256:" + b"0" * 64 + b"', subject: ana, tenant: acme, roles: [boss]}]",
    "tenant * without delegate": (
        b"tokens: [{hash: 'sha256:" + b"0" * 64 + b"', subject: ana, tenant: '*', roles: [caller]}]"
    ),
}


@pytest.mark.parametrize("content", TOKENS.values(), ids=TOKENS.keys())
def test_a_bad_tokens_file_is_named(launch_of: Callable[[str], Launch], tmp_path: Path, content: bytes | None):
    path = tmp_path / "tokens.yaml"
    if content is not None:
        path.write_bytes(content)
    said = launch_of("memory").refused(IDENTITY_MODE="tokens", TOKENS_FILE=path)
    todo = "make one with `phylactery tokens add` or `riskgate tokens add`" if content is None else "mend the file"
    assert f"{todo}, or name another in MEMORY_TOKENS_FILE" in said
    assert said.count(str(path)) == 1


def test_a_tokens_file_that_is_a_folder_is_named_by_every_service(launch: Launch, tmp_path: Path):
    began = launch.service == "riskgate"  # it has said by then which bundle decides
    said = launch.refused(after_it_began=began, IDENTITY_MODE="tokens", TOKENS_FILE=tmp_path)
    assert f"{tmp_path}: cannot be read (Is a directory)" in said
    assert f"{launch.prefix}_TOKENS_FILE" in said


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "70000"),
        ("DRAIN_SECONDS", "-1"),
        ("MAX_MESSAGE_BYTES", "lots"),
        ("LOG_LEVEL", "LOUD"),
        ("DATABASE_URL", f"mysql://ana:{SECRET}@h/x"),
        ("DATABASE_URL", SECRET),
        ("IDENTITY_MODE", "tokens"),
        ("HOST", "0.0.0.0"),
    ],
)
def test_a_setting_out_of_its_range_is_named(launch_of: Callable[[str], Launch], variable: str, value: str):
    assert f"MEMORY_{variable}" in launch_of("memory").refused(**{variable: value})


@pytest.mark.parametrize(
    ("service", "variable", "value"),
    [
        ("memory", "EVICT_OVER_CHARS", "0"),
        ("riskgate", "PERMIT_TTL_SECONDS", "86400"),
        ("riskgate", "ISSUER", "two words"),
        ("riskgate", "BUNDLE", "/nowhere/at/all"),
        ("agent", "MAX_CONCURRENT_TURNS", "0"),
        ("agent", "TOOL_MODULES", "not a JSON list"),
        ("agent", "TOOL_MODULES", '["no_such_module"]'),
        ("agent", "RISKGATE_TOKEN_FILE", "/nowhere/at/all"),
        ("agent", "SANDBOX_DIR", "/dev/null/sandbox"),
    ],
)
def test_each_service_names_its_own_variables(
    launch_of: Callable[[str], Launch], service: str, variable: str, value: str
):
    assert f"{service.upper()}_{variable}" in launch_of(service).refused(**{variable: value})


def test_a_ready_file_that_cannot_be_written_is_named(launch: Launch, tmp_path: Path):
    (tmp_path / "file").touch()
    # an agent has looked for RiskGate by then
    said = launch.refused(after_it_began=launch.service != "memory", READY_FILE=tmp_path / "file" / "ready.json")
    assert str(tmp_path / "file") in said
    assert f"{launch.prefix}_READY_FILE" in said


@pytest.mark.parametrize("content", ["tools: [", "", "revision: nought"])
def test_a_bad_bundle_is_named_with_its_file(launch_of: Callable[[str], Launch], tmp_path: Path, content: str):
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "riskgate.yaml").write_text(content)
    said = launch_of("riskgate").refused(BUNDLE=bundle)
    assert "riskgate.yaml" in said
    assert "RISKGATE_BUNDLE" in said


@pytest.mark.parametrize("file", ["keys/signing.json", "keys/code.key", "keys/data.key"])
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_damaged_key_of_riskgate_is_named(launch_of: Callable[[str], Launch], file: str, *, as_folder: bool):
    launch = launch_of("riskgate")
    path = launch.data / file
    path.parent.mkdir(mode=0o700, parents=True)
    if as_folder:
        path.mkdir(mode=0o700)
    else:
        path.write_bytes(SECRET.encode())
        path.chmod(0o600)
    assert str(path) in launch.refused()


@pytest.mark.parametrize("file", ["seal.key", "agent.db"])
@pytest.mark.parametrize("as_folder", [True, False])
def test_a_damaged_file_of_the_agent_is_named(launch_of: Callable[[str], Launch], file: str, *, as_folder: bool):
    launch = launch_of("agent")
    path = launch.data / file
    path.parent.mkdir(mode=0o700)
    if as_folder:
        path.mkdir(mode=0o700)
    else:
        path.write_bytes(GARBAGE)
        path.chmod(0o600)
    assert str(path) in launch.refused()
