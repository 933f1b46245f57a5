"""Lifecycle of the live bundle: loaded at start, activated, followed, refused (docs/adr/0011).

The active bundle of the database decides: the one with the highest revision that was ever accepted. A folder is one way
to submit a bundle, ActivateBundle another. A bundle is accepted if it is valid, signed where policy keys are
configured, and of a higher revision than the active one. Both acceptance and refusal are recorded.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.auth.levels import GUEST
from phylactery_chassis.errors import (
    STORE_FAILED,
    DomainError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    StartError,
)
from phylactery_chassis.rpc import hangup
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.bundles.acceptance import Acceptance, Candidate, files_of, invalid, require_cases
from phylactery_riskgate.bundles.journal import Activated, BundleRecords, Fault
from phylactery_riskgate.bundles.shadow import Shadow
from phylactery_riskgate.bundles.signing import PolicyKeyError, PolicyKeys, load_policy_keys
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle, read_bundle
from phylactery_riskgate.domain.bundle.files import MAX_FILES, BundleFiles, read_folder, read_parts
from phylactery_riskgate.domain.bundle.report import BundleReport, TenantFiles, examine, faults_of, files_for
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import bundles as rows
from phylactery_riskgate.store.bundles import Activation, BundleHead, Slot

_Stamp = tuple[tuple[str, int, int, int], ...]


class FolderWatch:
    """Change detection for a folder: reports a change once it has settled, since a half-written one is not a bundle."""

    def __init__(self, folder: Path) -> None:
        """Start from the folder's current state, which was read already."""
        self.folder = folder
        self._handled: _Stamp | None = _stamp(folder)
        self._seen = self._handled

    def changed(self, *, now: bool = False) -> bool:
        """Return True if the folder should be read: changed since it was read, and unchanged since the last look.

        With ``now`` the folder is declared complete.
        """
        before, self._seen = self._seen, _stamp(self.folder)
        if not now and (self._seen == self._handled or self._seen != before):
            return False
        self._handled = self._seen
        return True

    def forget(self) -> None:
        """Make the next look find the folder changed."""
        self._handled = None


def _stamp(folder: Path) -> _Stamp:
    """Return the fingerprint of a folder's state: every name with inode, modification time and size."""
    found: list[tuple[str, int, int, int]] = []
    for place, folders, names in os.walk(os.path.realpath(folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            try:
                now = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - up to a thousand calls per second
            except OSError:
                continue
            found.append((os.path.join(place, name), now.st_ino, now.st_mtime_ns, now.st_size))  # noqa: PTH118
            if len(found) > MAX_FILES:
                return tuple(found)
    return tuple(found)


FOLDER, ACTIVATION = "folder", "activation"
SYSTEM_PRINCIPAL = Principal("riskgate", "", frozenset())
"""The principal that submits a folder's bundle; its tenant is empty, so no tenant sees these records as its own."""

_BUNDLE, _SHADOW_BUNDLE = "--bundle or RISKGATE_BUNDLE", "RISKGATE_SHADOW_BUNDLE"
_log = get_logger("policies")

Parts = Iterable[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class BundleView:
    """The bundle state for an admin: ``shadow`` is None without one; ``files`` are those of a bundle by name.

    ``withheld`` names the files with omitted parts, because they concern people of other tenants.
    """

    live: BundleHead
    shadow: BundleHead | None
    decided: int
    differed: int
    skipped: int
    last_fault: Fault | None
    files: Mapping[str, str]
    withheld: tuple[str, ...] = ()


def _told(folder: Path, message: str) -> str:
    """Return what is wrong with the bundle of a folder, which is named once."""
    return message if message.startswith(f"{folder}: ") else f"{folder}: {message}"


def _is_no_folder(folder: Path, refusal: DomainError) -> bool:
    """Return whether the folder itself is the fault: it does not exist, is not a directory, or cannot be read."""
    return refusal.metadata.get("file") == str(folder)


def _way_out(folder: Path, refusal: DomainError, where: str) -> str:
    """Return what to do about a bundle that keeps the service from starting."""
    if _is_no_folder(folder, refusal):
        return f"name the folder of a bundle in {where}"
    return f"{'sign' if refusal.reason == 'BUNDLE_UNSIGNED' else 'mend'} the bundle, or name another in {where}"


class Policies:
    """The use cases of PolicyService."""

    def __init__(self, core: DecisionContext, settings: RiskGateSettings) -> None:
        """Store the context and settings; open() must be called first."""
        self._core, self._settings = core, settings
        self._acceptance = Acceptance(PolicyKeys())
        self._watch = FolderWatch(settings.bundle)
        self._lock = asyncio.Lock()
        self._records = BundleRecords(core)
        self._tasks: list[asyncio.Task[None]] = []
        self._number = -1
        """Number of the head that this process followed last."""
        core.live.follow(self.refresh, settings.bundle_poll_seconds)

    @property
    def shadow(self) -> Shadow:
        """Return the shadow bundle, which is evaluated in addition to the live one."""
        return self._core.live.shadow

    @property
    def follow_seconds(self) -> float:
        """Return how long a process with these settings may still use the previous bundle after an activation."""
        return self._settings.bundle_poll_seconds

    @property
    def problem(self) -> str:
        """Return why nothing can be decided now, or an empty string."""
        return self._core.live.problem

    async def open(self, fault: BundleError | None = None) -> None:
        """Settle which bundle decides: the folder's if its revision is higher, otherwise the active one.

        fault is the reason why the folder holds no usable bundle. If the folder was named explicitly, its bundle
        decides or none does. Otherwise, or with --or-active, the active bundle decides whatever is wrong with the
        folder. Raise StartError if no bundle can decide, if a bundle other than the named one would, or if policy keys
        cannot be used, and Unavailable if the active bundle cannot be loaded.
        """
        self._use_keys()
        head = (await self._heads())[0]
        await self._begin_shadow(head)
        if self._settings.bundle_is_named:
            await self._serve_named(head, fault)
        else:
            await self._serve_newest(head, fault)
        await self._tell_start()

    async def _serve_named(self, head: BundleHead, fault: BundleError | None) -> None:
        """Serve the explicitly named bundle. Raise StartError if that is not possible."""
        try:
            await self._hand_in(head, fault)
        except (InvalidArgument, FailedPrecondition, PermissionDenied) as error:
            folder = self._settings.bundle
            told = _told(folder, error.message)
            if not head.revision:
                raise StartError(f"{told}; {_way_out(folder, error, _BUNDLE)}") from None
            mended = "to serve this one, fix it and raise its revision"
            other = "to serve another, name its folder" if _is_no_folder(folder, error) else mended
            raise StartError(
                f"{told}; so the named bundle is not served. In {self._data} revision {head.revision} is "
                f"active, by {head.activated_by}: to use that one, pass --or-active or name no bundle; {other}; or "
                f"use another data folder"
            ) from None
        await self.refresh()

    async def _serve_newest(self, head: BundleHead, fault: BundleError | None) -> None:
        live = self._core.live
        if fault is None and live.held.bundle.revision < head.revision:
            _log.warning(
                "the folder is older than the active bundle, which decides",
                folder=live.held.bundle.revision,
                active=head.revision,
            )
            await self.refresh()
            live.engine  # noqa: B018 - raises if the active bundle cannot be used
            return
        try:
            await self._hand_in(head, fault)
        except (InvalidArgument, FailedPrecondition, PermissionDenied) as error:
            await self._go_on(error)
        await self.refresh()

    @property
    def _data(self) -> str:
        """Return the location of the stored data, without a password."""
        return "the database of RISKGATE_DATABASE_URL" if self._settings.database_url else str(self._settings.data_dir)

    async def _tell_start(self) -> None:
        """Log the bundle in force at start, and the signature rule for the next one."""
        head, held = (await self._heads())[0], self._core.live.held.bundle
        _log.info(
            "the bundle in force",
            revision=held.revision,
            hash=held.hash,
            came_by=head.source,
            activated_by=head.activated_by,
            folder=str(self._settings.bundle),
            named=self._settings.bundle_is_named,
            data=self._data,
            signatures=self._acceptance.rule,
        )
        if not any(tool.level == GUEST for tool in held.tools.values()):
            # A bundle of before there were guests: it fails closed, and an operator has to learn why.
            _log.warning("people of channels may use no tool: no tool of the bundle has level guest", see="tools.yaml")

    async def _hand_in(self, head: BundleHead, fault: BundleError | None) -> None:
        """Submit the folder's bundle at start; a refusal is recorded if another bundle is active."""
        try:
            if fault is not None:
                raise invalid(fault)
            candidate = self._acceptance.accepted(self._core.live.held)
            if candidate.hash != head.hash:
                await asyncio.to_thread(require_cases, candidate.engine.bundle)
        except (InvalidArgument, PermissionDenied, FailedPrecondition) as error:
            if head.revision:
                await self._refuse(SYSTEM_PRINCIPAL, FOLDER, error)
            raise
        await self._activate(SYSTEM_PRINCIPAL, candidate, Slot.LIVE, FOLDER)

    async def _go_on(self, refusal: DomainError) -> None:
        """Use the active bundle after the folder's was refused at start. Raise StartError if there is none."""
        self._watch.forget()  # a watched folder is read again: it may have been in the middle of a write
        folder = self._settings.bundle
        told = _told(folder, refusal.message)
        head = (await self._heads())[0]
        if not head.revision:
            raise StartError(f"{told}; {_way_out(folder, refusal, _BUNDLE)}")
        try:
            self._core.live.replace(await self._load(head))
        except (BundleError, DomainError) as error:
            mended = f"fix the folder and raise its revision, or name another in {_BUNDLE}"
            way_out = _way_out(folder, refusal, _BUNDLE) if _is_no_folder(folder, refusal) else mended
            raise StartError(
                f"{told}; nor can the active bundle be used, revision {head.revision}: {error.message}; {way_out}"
            ) from None

    def _use_keys(self) -> None:
        try:
            self._acceptance = Acceptance(load_policy_keys(self._settings.policy_keys))
        except PolicyKeyError as error:
            raise StartError(f"{error}; name the file of the public keys in RISKGATE_POLICY_KEYS") from None

    async def _begin_shadow(self, head: BundleHead) -> None:
        """Start the shadow bundle of its folder; a failure prevents only the very first start."""
        folder = self._settings.shadow_bundle
        if folder is None:
            return
        try:
            self.shadow.begin_with(await asyncio.to_thread(lambda: DecisionEngine(load_bundle(folder))))
        except BundleError as error:
            told = f"{_told(folder, str(error))}; {_way_out(folder, invalid(error), _SHADOW_BUNDLE)}"
            if not head.revision:
                raise StartError(told) from None
            _log.error("the shadow bundle cannot be used, so none decides beside the active one", problem=told)

    async def begin(self) -> None:
        """Start following database and folder, and running the shadow; SIGHUP checks the folder at once."""
        self._tasks += [asyncio.create_task(self._keep_up()), asyncio.create_task(self.shadow.run(self._core))]
        hangup.subscribe(self._look_now)

    async def end(self) -> None:
        """Stop what begin() started."""
        hangup.unsubscribe(self._look_now)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look_now(self) -> None:
        self._tasks.append(asyncio.create_task(self.look_at_folder(now=True)))

    async def show(self, who: Principal, bundle_hash: str = "") -> BundleView:
        """Return the live and shadow bundles, with the files of the live one or of the one with this hash.

        Raise NotFound NOT_EXPLAINABLE and Unavailable STORE_UNAVAILABLE.
        """
        _require_reader(who)
        await self.refresh()
        live, beside = await self._heads()
        shadow, engine = self.shadow, self.shadow.engine
        if engine is not None and engine.bundle.hash != beside.hash:
            beside = BundleHead(
                engine.bundle.revision, engine.bundle.hash, FOLDER, activated_by=SYSTEM_PRINCIPAL.subject
            )
        files = await self._kept(bundle_hash) if bundle_hash else files_of(self._core.live.held)
        seen = TenantFiles(files, ())
        if Role.INSTALLATION_OPERATOR not in who.roles:
            seen = await asyncio.to_thread(files_for, files, who.tenant)
        return BundleView(
            live,
            None if engine is None else beside,
            shadow.decided,
            shadow.differed,
            shadow.skipped,
            self._records.last_fault,
            seen.texts,
            seen.withheld,
        )

    async def history(self, who: Principal, limit: int) -> list[Activation]:
        """Return the latest activations of both slots, newest first. Raise PermissionDenied ROLE_REQUIRED."""
        _require_reader(who)
        return await self._core.database.read(lambda connection: rows.list_activations(connection, limit))

    async def _kept(self, bundle_hash: str) -> Mapping[str, str]:
        kept = await self._core.database.read(lambda connection: rows.find_files(connection, bundle_hash))
        if kept is None:
            raise NotFound(
                "NOT_EXPLAINABLE", f"no bundle {bundle_hash} is stored here", metadata={"bundle_hash": bundle_hash}
            )
        return kept

    async def validate(self, who: Principal, parts: Parts) -> tuple[str, BundleReport]:
        """Check a bundle and run its cases, in a thread; return its hash (empty if unreadable) and the report."""
        if Role.INSTALLATION_OPERATOR not in who.roles:
            who.require(Role.POLICY_ADMIN)

        def check() -> tuple[str, BundleReport]:
            try:
                files = read_parts(parts)
            except BundleError as error:
                return "", BundleReport(None, faults_of(error))
            return files.hash, examine(files)

        return await asyncio.to_thread(check)

    async def activate(
        self, who: Principal, parts: Parts, *, shadow: bool = False, skip_cases: bool = False
    ) -> Activated:
        """Make a bundle the active one of a slot.

        Raise PermissionDenied ROLE_REQUIRED, InvalidArgument BUNDLE_INVALID, PermissionDenied BUNDLE_UNSIGNED,
        FailedPrecondition BUNDLE_CASES_FAILED, BUNDLE_ROLLBACK and BUNDLE_REVISION_TOO_HIGH, and Unavailable
        STORE_UNAVAILABLE; all but the first and the last are recorded.
        """
        who.require(Role.INSTALLATION_OPERATOR)
        candidate = await self._accept(who, ACTIVATION, lambda: read_parts(parts), skip_cases=skip_cases)
        return await self._activate_and_tell(who, candidate, Slot.SHADOW if shadow else Slot.LIVE, ACTIVATION)

    async def end_shadow(self, who: Principal) -> Activated:
        """End shadow evaluation."""
        who.require(Role.INSTALLATION_OPERATOR)
        return await self._activate_and_tell(who, None, Slot.SHADOW, ACTIVATION)

    async def roll_back(self, who: Principal, bundle_hash: str = "") -> Activated:
        """Reactivate a stored bundle: the one with this hash, or the one before the active one.

        Raise PermissionDenied ROLE_REQUIRED and BUNDLE_UNSIGNED, NotFound BUNDLE_NOT_FOUND, FailedPrecondition
        BUNDLE_ROLLBACK if another was activated meanwhile, DataLoss, and Unavailable STORE_UNAVAILABLE.
        """
        who.require(Role.INSTALLATION_OPERATOR)
        seen, target = await self._core.database.read(lambda connection: _target(connection, bundle_hash))
        try:
            engine = await self._load(target)
            candidate = await asyncio.to_thread(self._acceptance.accepted, engine)
        except BundleError as error:
            raise invalid(error) from None
        async with self._lock:
            done = await self._core.write(lambda connection: self._records.go_back(connection, who, candidate, seen))
            self._take_over(done, candidate)
        _log.info("bundle rolled back", revision=done.head.revision, hash=done.head.hash, by=who.subject)
        return done

    async def refresh(self) -> None:
        """Follow the database: load the active bundle if it differs from the one in use.

        A bundle that cannot be loaded suspends every decision; deciding with the old one would undo the activation.
        """
        async with self._lock:
            at = time.monotonic()
            live, shadow = await self._heads()
            await self._follow_live(live)
            self._core.live.looked(at)
            await self._follow_shadow(shadow)

    async def look_at_folder(self, *, now: bool = False) -> None:
        """Submit the folder's bundle if it has changed and, unless ``now``, has settled since the last look.

        If it is faulty, the live bundle stays: the fault is logged, recorded, and returned by GetBundle.
        """
        if not await asyncio.to_thread(self._watch.changed, now=now):
            return
        try:
            candidate = await self._accept(SYSTEM_PRINCIPAL, FOLDER, lambda: read_folder(self._watch.folder))
            await self._activate_and_tell(SYSTEM_PRINCIPAL, candidate, Slot.LIVE, FOLDER)
        except STORE_FAILED as error:
            self._watch.forget()  # the store could not accept it: retry
            _log.warning("the bundle of the folder waits for the store", reason=error.reason)
        except DomainError:
            return  # logged and recorded where it was refused

    async def _keep_up(self) -> None:
        """Follow database and folder forever; poll at twice the required rate, so that no request has to."""
        for turn in itertools.count():
            await asyncio.sleep(self._settings.bundle_poll_seconds / 2)
            try:
                await self.refresh()
                if self._settings.watch_bundle and turn % 2:
                    await self.look_at_folder()
            except DomainError as error:
                _log.warning("the active bundle could not be read", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - a replica that stops following would use an old bundle
                _log.error("following the active bundle failed", error=type(error).__name__)

    # ---- accepting --------------------------------------------------------------------------------------------------

    async def _accept(
        self, who: Principal, source: str, read: Callable[[], BundleFiles], *, skip_cases: bool = False
    ) -> Candidate:
        """Read, check and prepare a bundle, in a thread. A refusal is recorded before it is raised."""
        try:
            return await asyncio.to_thread(self._acceptance.accept, read, skip_cases=skip_cases)
        except BundleError as error:
            refusal: DomainError = invalid(error)
        except (PermissionDenied, FailedPrecondition) as error:
            refusal = error
        await self._refuse(who, source, refusal)
        raise refusal

    async def _refuse(self, who: Principal, source: str, refusal: DomainError) -> None:
        """Record a refusal, and raise it."""
        await self._core.write(lambda connection: self._records.refuse(connection, who, source, refusal))

    async def _activate_and_tell(
        self, who: Principal, candidate: Candidate | None, slot: Slot, source: str
    ) -> Activated:
        """Activate while the service runs, and log it; the first bundle at a start is not logged here."""
        done = await self._activate(who, candidate, slot, source)
        if done.place is not None:
            _log.info("bundle activated", slot=str(slot), revision=done.head.revision, hash=done.head.hash)
        return done

    async def _activate(self, who: Principal, candidate: Candidate | None, slot: Slot, source: str) -> Activated:
        async with self._lock:
            done = await self._core.write(
                lambda connection: self._records.move(connection, who, candidate, slot, source)
            )
            if slot is Slot.SHADOW:
                if done.place is not None:
                    reach("riskgate.activated")
                self.shadow.replace(candidate.engine if candidate else None, done.head.hash)
            elif candidate is not None:
                self._take_over(done, candidate)
        return done

    def _take_over(self, done: Activated, candidate: Candidate) -> None:
        """Use the newly active bundle in this process."""
        if done.place is not None:
            reach("riskgate.activated")
        held = self._core.live.held
        self._core.live.replace(held if candidate.hash == held.bundle.hash else candidate.engine)
        self._number = done.head.number

    async def _heads(self) -> tuple[BundleHead, BundleHead]:
        return await self._core.database.read(
            lambda connection: (rows.find_head(connection, Slot.LIVE), rows.find_head(connection, Slot.SHADOW))
        )

    # ---- following --------------------------------------------------------------------------------------------------

    async def _follow_live(self, head: BundleHead) -> None:
        live = self._core.live
        if head.hash == live.held.bundle.hash:
            self._number = max(self._number, head.number)
            if live.problem:
                live.replace(live.held)
            return
        if head.number <= self._number and head.revision:
            why = f"revision {live.held.bundle.revision} decided here already; the database was set back"
            self._suspend(head, why)
            return
        try:
            engine = await self._load(head)
        except (BundleError, DomainError) as error:
            self._suspend(head, error.message)
            return
        except Exception as error:  # noqa: BLE001 - the old one must not decide, whatever the cause
            self._suspend(head, type(error).__name__)
            return
        live.replace(engine)
        self._number = head.number
        _log.info("bundle followed", revision=head.revision, hash=head.hash)

    def _suspend(self, head: BundleHead, why: str) -> None:
        if why not in self._core.live.problem:
            _log.error("the active bundle cannot be used, so nothing is decided", revision=head.revision, problem=why)
        self._core.live.suspend(head.revision, why)

    async def _follow_shadow(self, head: BundleHead) -> None:
        if not self.shadow.follows(head.hash):
            return
        try:
            self.shadow.replace(await self._load(head) if head.revision else None, head.hash)
        except (BundleError, DomainError) as error:
            _log.error("the shadow bundle cannot be used", revision=head.revision, problem=error.message)
            self.shadow.replace(None, head.hash)

    async def _load(self, head: BundleHead) -> DecisionEngine:
        """Load a stored bundle, which must still be the activated one, and signed by a key trusted now.

        Raise BundleError, PermissionDenied BUNDLE_UNSIGNED, NotFound and DataLoss.
        """
        texts = await self._kept(head.hash)

        def prepare() -> DecisionEngine:
            files = read_parts(((name, text.encode()) for name, text in texts.items()), stored=True)
            if files.hash != head.hash:
                raise BundleError(head.hash, 0, f"was altered in the database: its files are {files.hash}")
            self._acceptance.signer_of(files, head.revision)
            return DecisionEngine(read_bundle(files))

        return await asyncio.to_thread(prepare)


def _require_reader(who: Principal) -> None:
    """Raise PermissionDenied ROLE_REQUIRED unless the caller may see the bundles."""
    if not who.roles & {Role.AUDITOR, Role.OPERATOR, Role.INSTALLATION_OPERATOR}:
        who.require(Role.POLICY_ADMIN)


def _target(connection: Connection, bundle_hash: str) -> tuple[BundleHead, BundleHead]:
    """Return the active head, and the bundle to go back to. Raise NotFound BUNDLE_NOT_FOUND."""
    active = rows.find_head(connection, Slot.LIVE)
    if bundle_hash:
        revision = rows.find_revision(connection, bundle_hash)
        if revision:
            return active, BundleHead(revision, bundle_hash)
        told = f"no bundle {bundle_hash} is stored here; see `riskgate policy history`"
    else:
        before = rows.find_before(connection, active.hash)
        if before is not None:
            return active, before.head
        told = f"no bundle decided here before revision {active.revision}, as far as is known; name one by its hash"
    raise NotFound("BUNDLE_NOT_FOUND", told, metadata={"bundle_hash": bundle_hash})
