"""A real RiskGate over a real SQLite file: two users, two approvers, another tenant, an agent that is a delegate."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import sqlalchemy as sa
import yaml
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status
from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    audit_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    policy_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
    types_pb2,
)
from phylactery_chassis.clock import FakeClock
from phylactery_chassis.database import Database
from phylactery_chassis.identity import token_hash
from phylactery_chassis.server import RunningServer, start
from phylactery_riskgate.assembly import PACKAGE, assemble, find_bundle
from phylactery_riskgate.domain.bundle import default_bundle_folder
from phylactery_riskgate.domain.bundle_files import read_folder
from phylactery_riskgate.keys import KeyRing
from phylactery_riskgate.live_keys import LiveKeys
from phylactery_riskgate.service import RiskGate
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import bundles as bundle_rows
from phylactery_riskgate.store.bundles import BundleHead, Slot
from sqlalchemy.engine import Connection

PEOPLE: dict[str, dict[str, Any]] = {
    "ana": {"tenant": "acme", "roles": ["caller"]},
    "ben": {"tenant": "acme", "roles": ["caller"]},
    "carla": {"tenant": "acme", "roles": ["caller", "approver"]},
    "dora": {"tenant": "acme", "roles": ["approver"]},
    "gina": {"tenant": "acme", "roles": ["approver"], "groups": ["payments"], "level": "admin"},
    "Dora": {"tenant": "acme", "roles": ["approver"]},
    "Ana": {"tenant": "acme", "roles": ["approver"]},
    "robot": {"tenant": "acme", "roles": ["approver", "delegate"]},
    "zoe": {"tenant": "zeta", "roles": ["caller", "approver"]},
    "petra": {"tenant": "acme", "roles": ["policy_admin"]},
    "agent": {"tenant": "*", "roles": ["delegate"]},
    "pep": {"tenant": "local", "roles": ["delegate"]},
    "aldo": {"tenant": "acme", "roles": ["auditor"]},
    "zora": {"tenant": "zeta", "roles": ["auditor", "operator"]},
    "olga": {"tenant": "acme", "roles": ["operator"]},
}
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
WRITE = '{"path":"notes.txt","content":"sesame-open"}'


@dataclass
class Refusal:
    """A failed call, decoded."""

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: dict[str, str]
    fields: list[str]


def refusal_of(error: aio.AioRpcError) -> Refusal:
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        detail.Unpack(info)
        detail.Unpack(bad)
    return Refusal(
        error.code(),
        info.reason.removeprefix("ERROR_REASON_"),
        error.details() or "",
        dict(info.metadata),
        [violation.field for violation in bad.field_violations],
    )


def tool_call(tool: str = "write_file", arguments: str = WRITE, call_id: str = "c1", **more: str) -> types_pb2.ToolCall:
    return types_pb2.ToolCall(tool=tool, tool_call_id=call_id, arguments_json=arguments, **more)


class Person:
    """Calls as one identity; through names the end user a delegate speaks for."""

    def __init__(self, channel: aio.Channel, name: str, through: str = "", tenant: str = "acme") -> None:
        metadata = [("authorization", f"Bearer token-of-{name}")]
        if through:
            metadata += [("x-phylactery-subject", through), ("x-phylactery-tenant", tenant)]
        self.metadata = tuple(metadata)
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(channel)
        self.keys = key_pb2_grpc.KeyServiceStub(channel)
        self.policies = policy_pb2_grpc.PolicyServiceStub(channel)
        self.audit = audit_pb2_grpc.AuditServiceStub(channel)
        self.tasks = task_pb2_grpc.TaskServiceStub(channel)

    async def evaluate(
        self,
        call: types_pb2.ToolCall | None = None,
        *,
        thread: str = "t1",
        run: str = "r1",
        approval: str = "",
        plan_step: str = "",
        **more: Any,
    ) -> riskgate_pb2.EvaluateResponse:
        request = riskgate_pb2.EvaluateRequest(
            call=call or tool_call(), thread_id=thread, run_id=run, approval_id=approval, plan_step=plan_step, **more
        )
        return await self.decisions.Evaluate(request, metadata=self.metadata, timeout=60)

    async def redeem(
        self,
        permit: str,
        call: types_pb2.ToolCall | None = None,
        *,
        execution: str = "execution-1",
        thread: str = "t1",
        run: str = "r1",
        **more: Any,
    ) -> riskgate_pb2.RedeemResponse:
        request = riskgate_pb2.RedeemRequest(
            permit=permit, call=call or tool_call(), execution_id=execution, thread_id=thread, run_id=run, **more
        )
        return await self.decisions.Redeem(request, metadata=self.metadata, timeout=60)

    async def report(self, outcome: str, *, execution: str = "execution-1", **more: Any) -> int:
        request = riskgate_pb2.ReportOutcomeRequest(execution_id=execution, outcome=f"OUTCOME_{outcome}", **more)
        answer = await self.decisions.ReportOutcome(request, metadata=self.metadata, timeout=60)
        return int(answer.audit_index)

    async def get(self, approval_id: str) -> types_pb2.Approval:
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
        return (await self.approvals.GetApproval(request, metadata=self.metadata, timeout=60)).approval

    async def list(self, **options: Any) -> approval_pb2.ListApprovalsResponse:
        request = approval_pb2.ListApprovalsRequest(**options)
        return await self.approvals.ListApprovals(request, metadata=self.metadata, timeout=60)

    async def approve(self, approval: types_pb2.Approval, **changes: str) -> types_pb2.Approval:
        fields = {
            "approval_id": approval.id,
            "args_hash": approval.args_hash,
            "code": approval.code,
            "thread_id": approval.thread_id,
            **changes,
        }
        request = approval_pb2.ApproveRequest(**fields)
        return (await self.approvals.Approve(request, metadata=self.metadata, timeout=60)).approval

    async def reject(self, approval_id: str, *, reason: str = "", thread: str = "") -> types_pb2.Approval:
        request = approval_pb2.RejectRequest(approval_id=approval_id, reason=reason, thread_id=thread)
        return (await self.approvals.Reject(request, metadata=self.metadata, timeout=60)).approval

    async def cancel(self, approval_id: str, *, reason: str = "", thread: str = "") -> types_pb2.Approval:
        request = approval_pb2.CancelRequest(approval_id=approval_id, reason=reason, thread_id=thread)
        return (await self.approvals.Cancel(request, metadata=self.metadata, timeout=60)).approval

    async def begin(
        self, words: str = "hola", *, request: str = "request-1", thread: str = "t1", continues: str = ""
    ) -> str:
        """Opens a task and answers its id."""
        asked = task_pb2.BeginTaskRequest(
            request_id=request, thread_id=thread, words=words, continues_task_id=continues
        )
        return (await self.tasks.BeginTask(asked, metadata=self.metadata, timeout=60)).task_id

    async def observe(
        self, task_id: str, call_id: str = "c1", *, tool: str = "read_file", **more: Any
    ) -> task_pb2.ObserveResponse:
        """Shows a result, by default of a file that was read."""
        asked = task_pb2.ObserveRequest(task_id=task_id, tool_call_id=call_id, tool=tool, **more)
        return await self.tasks.Observe(asked, metadata=self.metadata, timeout=60)

    async def end_task(self, task_id: str) -> None:
        """Ends a task."""
        await self.tasks.EndTask(task_pb2.EndTaskRequest(task_id=task_id), metadata=self.metadata, timeout=60)

    async def list_keys(self) -> key_pb2.ListKeysResponse:
        return await self.keys.ListKeys(key_pb2.ListKeysRequest(), metadata=self.metadata, timeout=60)

    async def approved(self, call: types_pb2.ToolCall | None = None, **place: str) -> types_pb2.Approval:
        """Proposes, and answers the approval once its requester approved it."""
        return await self.approve((await self.evaluate(call, **place)).approval)

    async def permitted(self, call: types_pb2.ToolCall | None = None, **place: str) -> riskgate_pb2.EvaluateResponse:
        """Proposes, approves, and answers the decision that holds the permit."""
        approval = await self.approved(call, **place)
        return await self.evaluate(call, approval=approval.id, **place)


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

    def person(self, name: str) -> Person:
        return Person(self.channel, name)

    def through_agent(self, subject: str, tenant: str = "acme") -> Person:
        return Person(self.channel, "agent", subject, tenant)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        """Answers the audit log's records, of these kinds or all."""
        rows = self.database.read_sync(
            lambda c: c.execute(sa.text("SELECT record FROM audit_entries ORDER BY position")).scalars().all()
        )
        records = [json.loads(row) for row in rows]
        return [record for record in records if not kinds or record["kind"] in kinds]

    def count(self, table: str) -> int:
        return int(self.database.read_sync(lambda c: c.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()))

    def fail_writes(self, table: str = "audit_entries") -> None:
        """Makes the next inserts into a table fail."""
        self.database.write_sync(
            lambda c: c.execute(
                sa.text(
                    f"CREATE TRIGGER no_rows BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'no row is taken'); END"
                )
            )
        )

    def fill_disk(self) -> None:
        """Lets the database file grow no further."""
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
    """Copies the default bundle, with two more tools, more policies and other settings."""
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
    """Leaves the database as it is once the bundle was activated some time ago, with an audit log that begins empty."""
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
    """Opens a RiskGate; a fresh one records the activation of its first bundle."""
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
    """Makes another bundle beside the first."""
    made: list[Path] = []

    def make(**options: Any) -> Path:
        made.append(write_bundle(tmp_path / f"bundle-{len(made)}", **options))
        return made[-1]

    return make


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
    """Awaits a call that must fail and answers the refusal."""

    async def run(call: Awaitable[Any]) -> Refusal:
        with pytest.raises(aio.AioRpcError) as caught:
            await call
        return refusal_of(caught.value)

    return run


@pytest.fixture
def call() -> Callable[..., types_pb2.ToolCall]:
    """Makes a proposed call; by default the same write every time."""
    return tool_call


@pytest.fixture
def fresh_database(postgres_url: str) -> str:
    admin = sa.create_engine(postgres_url.format(database="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE IF EXISTS riskgate_test WITH (FORCE)"))
        connection.execute(sa.text("CREATE DATABASE riskgate_test"))
    admin.dispose()
    return postgres_url.format(database="riskgate_test")


@pytest.fixture(params=["embedded", "postgresql"])
def shared_database(request: pytest.FixtureRequest) -> str:
    """A database's URL; empty is the SQLite file of the data folder, which two gates of one name share."""
    return request.getfixturevalue("fresh_database") if request.param == "postgresql" else ""
