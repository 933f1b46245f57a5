"""A real RiskGate over a real SQLite file: two users, two approvers, another tenant, and a delegate agent."""

from __future__ import annotations

import asyncio
import functools
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from grpc import aio
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.auth.identity import token_hash
from phylactery_chassis.db.database import Database
from phylactery_chassis.rpc.server import RunningServer, start
from phylactery_riskgate.app import PACKAGE, RiskGate, assemble, find_bundle
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder
from phylactery_riskgate.domain.bundle.files import read_folder
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeyRing
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import bundles as bundle_rows
from phylactery_riskgate.store.bundles import BundleHead, Slot
from sqlalchemy.engine import Connection
from structlog.testing import capture_logs
from typer.testing import Result

from tests.support.clock import FakeClock
from tests.support.contracts.refusals import Refusal, refusal_of
from tests.support.riskgate.bundle_cache import read_bundles_once
from tests.support.riskgate.command import run
from tests.support.riskgate.people import PEOPLE, Person, tool_call
from tests.support.riskgate.rivals import Rival
from tests.support.servers.postgres import brief_database

read_bundles_once()

EXTRA_TOOLS = [
    {
        "name": "pay",
        "description": "Pays somebody.",
        "description_es": "Paga a alguien.",
        "risk": "high",
        "effect": "irreversible",
        "controls": ["/to"],
        "sensitive": ["/note"],
        "schema": {
            "type": "object",
            "properties": {"to": {"type": "string"}, "note": {"type": "string"}},
            "additionalProperties": False,
        },
    },
    {
        "name": "wipe",
        "description": "Wipes a folder.",
        "description_es": "Borra una carpeta.",
        "risk": "critical",
        "effect": "irreversible",
        "schema": {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False},
    },
]


@dataclass
class Gate:
    """The running service and what a fault test reaches into."""

    folder: Path
    settings: RiskGateSettings
    database: Database
    clock: FakeClock
    keys: KeyRing
    riskgate: RiskGate
    server: RunningServer
    channel: aio.Channel

    @property
    def heads(self) -> HeadStore:
        """Give the heads kept outside the database."""
        return HeadStore(self.settings.heads_dir)

    def person(self, name: str) -> Person:
        return Person(self.channel, name)

    def through_agent(self, subject: str, tenant: str = "acme") -> Person:
        return Person(self.channel, "agent", subject, tenant)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the audit log's records, of these kinds or all."""
        rows = self.database.read_sync(
            lambda c: c.execute(sa.text("SELECT record FROM audit_entries ORDER BY position")).scalars().all()
        )
        records = [json.loads(row) for row in rows]
        return [record for record in records if not kinds or record["kind"] in kinds]

    def count(self, table: str) -> int:
        return int(self.database.read_sync(lambda c: c.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()))

    def fail_writes(self, table: str = "audit_entries") -> None:
        """Make the next inserts into a table fail."""
        self.database.write_sync(
            lambda c: c.execute(
                sa.text(
                    f"CREATE TRIGGER no_rows BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no row is taken'); END"
                )
            )
        )

    def fill_disk(self) -> None:
        """Let the database file grow no further."""
        pages = self.database.read_sync(lambda c: c.execute(sa.text("PRAGMA page_count")).scalar_one())
        sa.event.listen(
            self.database.engine, "connect", lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages}").close()
        )
        self.database.engine.dispose()

    async def stop(self) -> None:
        await self.channel.close()
        await self.server.stop()


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.cache
def _tools_text() -> str:
    tools = _read(default_bundle_folder() / "tools.yaml")
    tools["tools"] += EXTRA_TOOLS
    return yaml.safe_dump(tools, allow_unicode=True)


def write_bundle(folder: Path, *, policies: str = "", revision: int = 1, **settings: Any) -> Path:
    """Copy the default bundle, with two more tools, more policies and other settings."""
    shutil.copytree(default_bundle_folder(), folder)
    shutil.rmtree(folder / "tests")
    (folder / "tools.yaml").write_text(_tools_text())
    head = _read(folder / "riskgate.yaml") | {"revision": revision} | settings
    (folder / "riskgate.yaml").write_text(yaml.safe_dump(head))
    if policies:
        (folder / "policies" / "more.cedar").write_text(policies)
    return folder


@functools.cache
def _tokens_text() -> str:
    entries = [{"hash": token_hash(f"token-of-{name}"), "subject": name, **entry} for name, entry in PEOPLE.items()]
    return yaml.safe_dump({"tokens": entries})


def write_tokens(path: Path) -> Path:
    path.write_text(_tokens_text())
    return path


def activate_before(database: Database, bundle: Path) -> None:
    """Leave the database as it is once the bundle was activated some time ago, with an audit log that begins empty."""
    files, revision = read_folder(bundle), int(_read(bundle / "riskgate.yaml")["revision"])

    def keep(connection: Connection) -> None:
        if not bundle_rows.find_head(connection, Slot.LIVE).revision:
            bundle_rows.keep_bundle(connection, files.hash, revision, dict(files.texts), 1)
            head = BundleHead(revision, files.hash, "folder", activate_us=1, activated_by="riskgate")
            bundle_rows.move_head(connection, Slot.LIVE, head)

    database.write_sync(keep)


async def open_gate(
    folder: Path, *, clock: FakeClock | None = None, bundle: Path, fresh: bool = False, port: int = 0, **options: Any
) -> Gate:
    """Open a RiskGate; a fresh one records the activation of its first bundle."""
    settings = RiskGateSettings(
        data_dir=folder,
        port=port,
        drain_seconds=0,
        identity_mode="tokens",
        tokens_file=write_tokens(folder.with_suffix(".tokens.yaml")),
        bundle=bundle,
        **options,
    )
    settings.prepare()
    database, keys = Database(settings.url), LiveKeys.open(settings.keys_dir)
    database.migrate(PACKAGE)
    if not fresh:
        activate_before(database, bundle)
    clock = clock or FakeClock()
    live, fault = find_bundle(settings)
    riskgate = RiskGate(database, live, keys, settings, clock)
    await riskgate.open(fault)
    server = await start(assemble(riskgate, database, settings), settings)
    channel = aio.insecure_channel(
        f"127.0.0.1:{server.port}", options=[("grpc.enable_retries", 0), ("grpc.max_send_message_length", -1)]
    )
    return Gate(folder, settings, database, clock, keys.ring, riskgate, server, channel)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "bundle")


@pytest.fixture
def bundle_with(tmp_path: Path) -> Callable[..., Path]:
    """Make another bundle beside the first."""
    made: list[Path] = []

    def make(**options: Any) -> Path:
        made.append(write_bundle(tmp_path / f"bundle-{len(made)}", **options))
        return made[-1]

    return make


@pytest.fixture
def remote(gate):
    """Run a command as somebody against the running gate, whose log, in this same process, is kept apart."""

    async def ask(person: str, *words: object, given: str | bytes | None = None) -> Result:
        settings = {"RISKGATE_TOKEN": f"token-of-{person}", "RISKGATE_TARGET": f"127.0.0.1:{gate.server.port}"}
        return await asyncio.to_thread(run, *words, given=given, env=settings)

    with capture_logs():
        yield ask


@pytest.fixture
def stricter(bundle_with: Callable[..., Path]) -> Path:
    """Revision 2, under which nobody reads."""
    no_reads = '@id("no-reads") @title("Nobody reads") forbid (principal, action in Action::"effect:read", resource);\n'
    return bundle_with(policies=no_reads, revision=2)


@pytest.fixture
async def make_gate(tmp_path: Path, bundle: Path) -> AsyncIterator[Callable[..., Awaitable[Gate]]]:
    opened: list[Gate] = []

    async def make(name: str = "data", **options: Any) -> Gate:
        opened.append(await open_gate(tmp_path / name, **{"bundle": bundle, **options}))
        return opened[-1]

    yield make
    for gate in opened:
        await gate.stop()


@pytest.fixture
async def gate(make_gate: Callable[..., Awaitable[Gate]]) -> Gate:
    return await make_gate()


@pytest.fixture
def ana(gate: Gate) -> Person:
    return gate.person("ana")


@pytest.fixture
def refused() -> Callable[[Awaitable[Any]], Awaitable[Refusal]]:
    """Await a call that must fail and return the refusal."""

    async def run(call: Awaitable[Any]) -> Refusal:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        return refusal_of(caught.value)

    return run


@pytest.fixture
def call() -> Callable[..., types_pb2.ToolCall]:
    """Make a proposed call; by default the same write every time."""
    return tool_call


@pytest.fixture
def fresh_database(postgres_url: str) -> str:
    return brief_database(postgres_url, PACKAGE)


@pytest.fixture(params=["embedded", pytest.param("postgresql", marks=pytest.mark.slow)])
def shared_database(request: pytest.FixtureRequest) -> str:
    """A database's URL; empty is the SQLite file of the data folder, which two gates of one name share."""
    return request.getfixturevalue("fresh_database") if request.param == "postgresql" else ""


@pytest.fixture
async def rivals(tmp_path: Path, bundle: Path, shared_database: str) -> AsyncIterator[Callable[..., Awaitable[Rival]]]:
    """Start processes over one database; what still runs at the end is stopped."""
    folder = tmp_path / "data"
    folder.mkdir()
    if shared_database:
        database = Database(shared_database)
        database.migrate(PACKAGE)
        database.close()
    started: list[Rival] = []

    async def start(name: str, crash_at: str = "") -> Rival:
        rival = Rival(name, folder, bundle, shared_database, crash_at)
        started.append(rival)
        await rival.connect()
        return rival

    yield start
    for rival in started:
        await rival.stop()
