"""Composition root of RiskGate: bundle, keys, database, servicers and the periodic maintenance task."""

from __future__ import annotations

import asyncio
import contextlib

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
from phylactery_chassis.util.clock import Clock, SystemClock

from phylactery_riskgate.api.approvals import ApprovalServicer
from phylactery_riskgate.api.audit import AuditServicer
from phylactery_riskgate.api.control import ControlServicer
from phylactery_riskgate.api.decisions import RiskGateServicer
from phylactery_riskgate.api.inspection import InspectionServicer
from phylactery_riskgate.api.keys import KeyServicer
from phylactery_riskgate.api.policies import PolicyServicer
from phylactery_riskgate.api.tasks import TaskServicer
from phylactery_riskgate.audit.log import LogError
from phylactery_riskgate.bundles.live import LiveBundle
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.facade import RiskGate
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeysError
from phylactery_riskgate.settings import RiskGateSettings

PACKAGE = "phylactery_riskgate"
_LOG_PAGES = 1_000
"""Size of the WAL in pages (4 MB) before a checkpoint: a hundred records, each up to 5 % slower while it grows."""

_log = get_logger("riskgate")


async def build(settings: RiskGateSettings, *, clock: Clock | None = None) -> Service:
    """Return the service, ready to be served.

    Raise StartError if bundle, keys, schema or log cannot be used; the message says which, and what to do.
    """
    settings.prepare()
    try:
        live, fault = await asyncio.to_thread(find_bundle, settings)
        keys = LiveKeys.open(settings.keys_dir, settings.signing_key_file)
    except KeysError as error:
        raise StartError(str(error)) from None
    running = RunningCalls()
    # nearly every RPC of RiskGate writes a record of about a dozen pages
    database = Database(settings.url, company=lambda: running.count, log_pages=_LOG_PAGES)
    try:
        await asyncio.to_thread(database.migrate_at_start, PACKAGE)
        riskgate = RiskGate(database, live, keys, settings, clock or SystemClock())
        await riskgate.open(fault)
    except (StartError, LogError, DomainError) as error:
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


def assemble(
    riskgate: RiskGate, database: Database, settings: RiskGateSettings, running: RunningCalls | None = None
) -> Service:
    """Return the service over an open RiskGate."""
    signing: list[asyncio.Task[None]] = []

    async def begin() -> None:
        signing.append(asyncio.create_task(_sign_in_time(riskgate, settings.checkpoint_seconds)))
        await riskgate.policies.begin()

    async def healthy() -> bool:
        return not riskgate.problem and await database.probe()

    async def end() -> None:
        for task in signing:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await riskgate.policies.end()
        try:
            await _try_to_sign(riskgate)
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
            RiskGateServicer(riskgate),
        ),
        registration(
            approval_pb2.DESCRIPTOR,
            "ApprovalService",
            approval_pb2_grpc.add_ApprovalServiceServicer_to_server,
            ApprovalServicer(riskgate),
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
            key_pb2.DESCRIPTOR, "KeyService", key_pb2_grpc.add_KeyServiceServicer_to_server, KeyServicer(riskgate)
        ),
    ]


async def _sign_in_time(riskgate: RiskGate, seconds: float) -> None:
    """Sign the head at a fixed interval, so that no entry stays uncovered for long, and drop expired data.

    Changes of the signing keys are recorded first, so that the head covers them.
    """
    while True:
        await asyncio.sleep(seconds)
        await _try_to_record_keys(riskgate)
        await _try_to_sign(riskgate)
        await _try_to_prune(riskgate)
        await _try_to_retain(riskgate)


async def _try_to_record_keys(riskgate: RiskGate) -> None:
    """Record changes of the signing keys; if the store refuses, the next round records them."""
    try:
        await riskgate.record_keys()
    except DomainError as error:
        _log.warning("a change of the signing keys is not on record yet", reason=error.reason)


async def _try_to_prune(riskgate: RiskGate) -> None:
    """Drop old budget counts, approval changes and finished tasks; if the store refuses, the next round drops them."""
    try:
        await riskgate.prune_usage()
        await riskgate.watches.prune()
        await riskgate.tasks.prune()
    except DomainError as error:
        _log.warning("old counts of budgets, changes of approvals and tasks were not dropped", reason=error.reason)


async def _try_to_retain(riskgate: RiskGate) -> None:
    """Empty records past their retention; if the store refuses, the next round continues."""
    try:
        await riskgate.retention.run()
    except DomainError as error:
        _log.warning("records past their retention were not emptied", reason=error.reason)


async def _try_to_sign(riskgate: RiskGate) -> None:
    """Sign the head and precompute subtrees for proofs; if the store refuses, the next round covers the entries."""
    try:
        await riskgate.sign_head()
        await riskgate.auditing.keep_subtrees()
    except DomainError as error:
        _log.warning("the audit head was not signed", reason=error.reason)
