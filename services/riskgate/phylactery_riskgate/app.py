"""Composition root of RiskGate: its use cases over one database, and the service that offers them."""

from __future__ import annotations

import asyncio

from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    audit_pb2,
    audit_pb2_grpc,
    control_pb2,
    control_pb2_grpc,
    inspection_pb2,
    inspection_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    policy_pb2,
    policy_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
)
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.rpc.interceptor import RunningCalls
from phylactery_chassis.rpc.server import Registration, Service, registration
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock, SystemClock
from phylactery_chassis.util.limits import TextWork
from sqlalchemy.engine import Connection

from phylactery_riskgate.api.approvals import ApprovalServicer
from phylactery_riskgate.api.audit import AuditServicer
from phylactery_riskgate.api.control import ControlServicer
from phylactery_riskgate.api.decisions import RiskGateServicer
from phylactery_riskgate.api.inspection import InspectionServicer
from phylactery_riskgate.api.keys import KeyServicer
from phylactery_riskgate.api.policies import PolicyServicer
from phylactery_riskgate.api.tasks import TaskServicer
from phylactery_riskgate.approvals import metrics
from phylactery_riskgate.approvals.service import ApprovalService
from phylactery_riskgate.approvals.vote_proofs import VoteProofs
from phylactery_riskgate.approvals.watch import Watches
from phylactery_riskgate.audit.commitments import KeyedHashes
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.audit.log import AuditLog, LogError, open_log
from phylactery_riskgate.audit.reader import AuditReader
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.bundles.lifecycle import Policies
from phylactery_riskgate.bundles.live import LiveBundle
from phylactery_riskgate.decisions.access import AccessEvaluations
from phylactery_riskgate.decisions.batch import Batches
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.decisions.evaluate import Evaluation
from phylactery_riskgate.decisions.explain import Explaining
from phylactery_riskgate.decisions.redeem import Redemptions
from phylactery_riskgate.decisions.replay import Replays
from phylactery_riskgate.decisions.stops import Control
from phylactery_riskgate.decisions.usage import Counting
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.housekeeping import Housekeeping
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeysError
from phylactery_riskgate.notices.config import NO_NOTICES, Notices, read_notices
from phylactery_riskgate.notices.delivery import Deliveries
from phylactery_riskgate.notices.outbox import Outbox
from phylactery_riskgate.privacy.retention import Retention
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.audit import log_names, newest_us
from phylactery_riskgate.tasks.inspection import Inspecting
from phylactery_riskgate.tasks.service import Tasks

PACKAGE = "phylactery_riskgate"
_LOG_PAGES = 1_000
_SKEW_US = 30 * MICROSECONDS
_log = get_logger("clock")
"""Size of the WAL in pages (4 MB) before a checkpoint: a hundred records, each up to 5 % slower while it grows."""


class RiskGate:
    """The use cases over one database, independent of gRPC; each error is documented at its use case."""

    def __init__(
        self, database: Database, live: LiveBundle, keys: LiveKeys, settings: RiskGateSettings, clock: Clock
    ) -> None:
        """Assemble the parts; open() must be called before the first request."""
        data_key = keys.ring.data_key
        vault = Vault(data_key)
        self.live, self.keys, self.issuer = live, keys, settings.issuer
        self.audit = AuditLog(
            settings.log_name,
            vault=vault,
            data_key_id=keys.ring.data_key_id,
            signer=lambda: keys.ring.signer,
            heads=HeadStore(settings.heads_dir, settings.keys_dir),
            sign_every=settings.checkpoint_every,
        )
        self.core = DecisionContext(
            database,
            live,
            keys,
            self.audit,
            clock,
            settings.issuer,
            settings.permit_ttl_seconds,
            settings.decision_ttl_seconds,
            Counting(data_key),
            KeyedHashes(data_key),
            VoteProofs(data_key),
            TextWork("reading"),
            Outbox(notices_of(settings), vault),
        )
        self.tasks = Tasks(self.core, data_key, settings)
        self.redemptions = Redemptions(self.core)
        self.evaluation = Evaluation(self.core, self.tasks, self.redemptions)
        self.batches = Batches(self.core, self.evaluation)
        self.access = AccessEvaluations(self.core)
        self.explaining = Explaining(self.core, self.tasks)
        self.approvals = ApprovalService(self.core)
        self.watches = Watches(self.core, self.approvals)
        self.auditing = AuditReader(self.core, self.tasks)
        self.policies = Policies(self.core, settings)
        self.replays = Replays(self.core)
        self.inspecting = Inspecting(self.core.threads)
        self.control = Control(self.core)
        self.retention = Retention(self.core, settings.retain_decisions_days)
        self.deliveries = Deliveries(self.core)
        self.housekeeping = Housekeeping(self.core, self.tasks, self.watches, self.auditing, self.retention)

    async def open(self, fault: BundleError | None = None) -> None:
        """Open the audit log and settle which bundle decides.

        fault is the reason why the bundle folder holds no usable bundle. Raise audit.LogError if keys and database do
        not belong together, HeadsDisagree if a log differs from its signed head, and StartError and DomainErrors.
        """
        core = self.core

        def open_(connection: Connection) -> int:
            now_us = core.clock.now_us()
            open_log(connection, self.audit, core.votes.adopt, now_us=now_us, joining=True)
            return newest_us(connection) - now_us

        behind_us = await core.write(open_)
        if behind_us > _SKEW_US:  # another replica's clock may be a little ahead
            _log.warning(
                "the clock is behind the newest record: approvals and permits live longer by that; set the clock",
                behind_seconds=behind_us // MICROSECONDS,
            )
        self.audit.opened()
        await self.policies.open(fault)

    @property
    def problem(self) -> str:
        """Return why nothing can be decided (bundle, or a log that differs from its signed head), or an empty text."""
        return self.policies.problem or self.audit.problem


async def build(settings: RiskGateSettings, *, clock: Clock | None = None) -> Service:
    """Return the service, ready to be served.

    Raise StartError if bundle, keys, schema or log cannot be used; the message says which, and what to do.
    """
    settings.prepare()
    live, fault = await asyncio.to_thread(find_bundle, settings)
    running = RunningCalls()
    # nearly every RPC of RiskGate writes a record of about a dozen pages
    database = Database(settings.url, company=lambda: running.count, log_pages=_LOG_PAGES)
    try:
        await asyncio.to_thread(database.migrate_at_start, PACKAGE)
        # the keys after the database, which alone knows whether a missing key is new or lost
        known = bool(await database.read(log_names))
        keys = LiveKeys.open(settings.keys_dir, settings.signing_key_file, known=known)
        riskgate = RiskGate(database, live, keys, settings, clock or SystemClock())
        await riskgate.open(fault)
    except (StartError, KeysError, LogError, DomainError) as error:
        await asyncio.to_thread(database.close)
        raise StartError(error.message if isinstance(error, DomainError) else str(error)) from None
    return assemble(riskgate, database, settings, running)


def find_bundle(settings: RiskGateSettings) -> tuple[LiveBundle, BundleError | None]:
    """Return the bundle of the folder and None, or an empty live bundle and the error.

    With an error, the bundle that was accepted last may stay active.
    """
    try:
        return LiveBundle(DecisionEngine(load_bundle(settings.bundle))), None
    except BundleError as error:
        return LiveBundle(None), error


def notices_of(settings: RiskGateSettings) -> Notices:
    """Return the sinks of the settings' file, none without one. Raise StartError with file and line."""
    path = settings.notices_file
    if path is None:
        return NO_NOTICES
    try:
        return read_notices(path)
    except BundleError as error:
        raise StartError("; ".join(str(one) for one in error.all)) from None


def assemble(
    riskgate: RiskGate, database: Database, settings: RiskGateSettings, running: RunningCalls | None = None
) -> Service:
    """Return the service over an open RiskGate."""
    unwatch = metrics.watch(database, riskgate.core.clock)

    async def begin() -> None:
        riskgate.housekeeping.start(settings.checkpoint_seconds)
        await riskgate.policies.begin()
        await riskgate.deliveries.start()

    async def healthy() -> bool:
        return not riskgate.problem and await database.probe()

    async def end() -> None:
        unwatch()
        await riskgate.deliveries.stop()
        await riskgate.housekeeping.stop()
        await riskgate.policies.end()
        riskgate.core.threads.close()
        try:
            await riskgate.housekeeping.sign()
        finally:
            await asyncio.to_thread(database.close)

    return Service(
        name=settings.service,
        registrations=_registrations(riskgate),
        healthy=healthy,
        on_start=[begin],
        on_drain=[riskgate.auditing.tails.end, riskgate.watches.close],
        on_stop=[end],
        running=running or RunningCalls(),
    )


def _registrations(riskgate: RiskGate) -> list[Registration]:
    return [
        registration(
            riskgate_pb2.DESCRIPTOR,
            "RiskGateService",
            riskgate_pb2_grpc.add_RiskGateServiceServicer_to_server,
            RiskGateServicer(
                riskgate.evaluation, riskgate.batches, riskgate.access, riskgate.explaining, riskgate.redemptions
            ),
        ),
        registration(
            approval_pb2.DESCRIPTOR,
            "ApprovalService",
            approval_pb2_grpc.add_ApprovalServiceServicer_to_server,
            ApprovalServicer(riskgate.approvals, riskgate.watches),
        ),
        registration(
            audit_pb2.DESCRIPTOR,
            "AuditService",
            audit_pb2_grpc.add_AuditServiceServicer_to_server,
            AuditServicer(riskgate.auditing),
        ),
        registration(
            inspection_pb2.DESCRIPTOR,
            "InspectionService",
            inspection_pb2_grpc.add_InspectionServiceServicer_to_server,
            InspectionServicer(riskgate.inspecting),
        ),
        registration(
            policy_pb2.DESCRIPTOR,
            "PolicyService",
            policy_pb2_grpc.add_PolicyServiceServicer_to_server,
            PolicyServicer(riskgate.policies, riskgate.replays, riskgate.live),
        ),
        registration(
            control_pb2.DESCRIPTOR,
            "ControlService",
            control_pb2_grpc.add_ControlServiceServicer_to_server,
            ControlServicer(riskgate.control),
        ),
        registration(
            task_pb2.DESCRIPTOR,
            "TaskService",
            task_pb2_grpc.add_TaskServiceServicer_to_server,
            TaskServicer(riskgate.tasks),
        ),
        registration(
            key_pb2.DESCRIPTOR,
            "KeyService",
            key_pb2_grpc.add_KeyServiceServicer_to_server,
            KeyServicer(riskgate.keys, riskgate.issuer),
        ),
    ]
