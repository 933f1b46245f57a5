"""The life of the bundle that decides: found at start, activated, followed, refused (docs/adr/0011).

What decides is the active bundle of the database: the one with the highest revision that was ever accepted. A folder
is one way to hand in a bundle, ActivateBundle another. A bundle is accepted where it is valid, signed where policy keys
are configured, and of a higher revision than the active one; accepted and refused are both recorded.
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
from phylactery_riskgate.decisions.context import Core
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle, read_bundle
from phylactery_riskgate.domain.bundle.files import MAX_FILES, BundleFiles, read_folder, read_parts
from phylactery_riskgate.domain.bundle.report import BundleReport, TenantFiles, examine, faults_of, files_for
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import bundles as rows
from phylactery_riskgate.store.bundles import Activation, BundleHead, Slot

_Stamp = tuple[tuple[str, int, int, int], ...]


class FolderWatch:
    """Says when a folder has changed and then stood still: a folder in the middle of being written is no bundle yet."""

    def __init__(self, folder: Path) -> None:
        """Take the folder as it stands: it was read already."""
        self.folder = folder
        self._handled: _Stamp | None = _stamp(folder)
        self._seen = self._handled

    def changed(self, *, now: bool = False) -> bool:
        """Return whether to read the folder: it is not as it was when it was read, and is as it was at the last look.

        With ``now`` somebody says that it is complete.
        """
        before, self._seen = self._seen, _stamp(self.folder)
        if not now and (self._seen == self._handled or self._seen != before):
            return False
        self._handled = self._seen
        return True

    def forget(self) -> None:
        """Let the next look find the folder changed."""
        self._handled = None


def _stamp(folder: Path) -> _Stamp:
    """Return what tells one state of a folder from another: every name with inode, time of change and size."""
    found: list[tuple[str, int, int, int]] = []
    for place, folders, names in os.walk(os.path.realpath(folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            try:
                now = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - a thousand of them every second
            except OSError:
                continue
            found.append((os.path.join(place, name), now.st_ino, now.st_mtime_ns, now.st_size))  # noqa: PTH118
            if len(found) > MAX_FILES:
                return tuple(found)
    return tuple(found)


FOLDER, ACTIVATION = "folder", "activation"
ITSELF = Principal("riskgate", "", frozenset())
"""Who hands in the bundle of a folder; no tenant's name is empty, so no tenant finds these records among its own."""

_log = get_logger("policies")

Parts = Iterable[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class BundleView:
    """What an admin sees: ``shadow`` is None where there is none; ``files`` are those of a bundle by name.

    ``withheld`` names those of which something is left out, because it is about people of other tenants.
    """

    live: BundleHead
    shadow: BundleHead | None
    decided: int
    differed: int
    skipped: int
    last_fault: Fault | None
    files: Mapping[str, str]
    withheld: tuple[str, ...] = ()


class Policies:
    """The use cases around the bundle; see the module."""

    def __init__(self, core: Core, settings: RiskGateSettings) -> None:
        """open() comes before everything else."""
        self._core, self._settings = core, settings
        self._acceptance = Acceptance(PolicyKeys())
        self._watch = FolderWatch(settings.bundle)
        self._lock = asyncio.Lock()
        self._records = BundleRecords(core)
        self._tasks: list[asyncio.Task[None]] = []
        self._number = -1
        """The number of the head that this process followed last."""
        core.live.follow(self.refresh, settings.bundle_poll_seconds)

    @property
    def shadow(self) -> Shadow:
        """What decides beside the live bundle."""
        return self._core.live.shadow

    @property
    def follow_seconds(self) -> float:
        """Return how long a process with these settings may still decide by the bundle from before an activation."""
        return self._settings.bundle_poll_seconds

    @property
    def problem(self) -> str:
        """Say why nothing is decided now; empty where it is."""
        return self._core.live.problem

    async def open(self, fault: BundleError | None = None) -> None:
        """Settle what decides: the bundle of the folder where its revision is higher, else the active one.

        fault is why the folder holds no bundle. Where somebody named the folder, its bundle decides or none does. Where
        nobody did, or said that the active one may go on, it goes on whatever is wrong with the folder, as while
        serving. Raise StartError where nothing can decide, or another bundle than the one that was named would, or
        policy keys cannot be used, and Unavailable where the active bundle cannot be loaded.
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
        """Let the bundle that somebody named decide. Raise StartError where it cannot."""
        try:
            await self._hand_in(head, fault)
        except (InvalidArgument, FailedPrecondition, PermissionDenied) as error:
            told = f"{self._settings.bundle}: {error.message}"
            if not head.revision:
                raise StartError(f"{told}; mend the bundle, or name another in RISKGATE_BUNDLE") from None
            raise StartError(
                f"{told}; so the bundle that was named is not served. In {self._data} revision {head.revision} is "
                f"active, by {head.activated_by}: to go on with that one, say --or-active or name no bundle; to serve "
                "this one, mend it and raise its revision; or name another data folder"
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
            live.engine  # noqa: B018 - raises where the active bundle cannot be used
            return
        try:
            await self._hand_in(head, fault)
        except (InvalidArgument, FailedPrecondition, PermissionDenied) as error:
            await self._go_on(error)
        await self.refresh()

    @property
    def _data(self) -> str:
        """Where what is kept lies, without a password."""
        return "the database of RISKGATE_DATABASE_URL" if self._settings.database_url else str(self._settings.data_dir)

    async def _tell_start(self) -> None:
        """Log what decides from the start on, and by what rule the next bundle may."""
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

    async def _hand_in(self, head: BundleHead, fault: BundleError | None) -> None:
        """Hand in the folder's bundle at start; a refusal is recorded where another bundle is active."""
        try:
            if fault is not None:
                raise invalid(fault)
            candidate = self._acceptance.accepted(self._core.live.held)
            if candidate.hash != head.hash:
                await asyncio.to_thread(require_cases, candidate.engine.bundle)
        except (InvalidArgument, PermissionDenied, FailedPrecondition) as error:
            if head.revision:
                await self._refuse(ITSELF, FOLDER, error)
            raise
        await self._activate(ITSELF, candidate, Slot.LIVE, FOLDER)

    async def _go_on(self, refusal: DomainError) -> None:
        """Let the active bundle decide where the folder's was refused at start. Raise StartError where none can."""
        self._watch.forget()  # a folder that is watched is looked at again: somebody may have been writing it
        told = f"{self._settings.bundle}: {refusal.message}"
        head = (await self._heads())[0]
        if not head.revision:
            raise StartError(f"{told}; mend the bundle, or name another in RISKGATE_BUNDLE")
        try:
            self._core.live.replace(await self._load(head))
        except (BundleError, DomainError) as error:
            raise StartError(
                f"{told}; nor can the active bundle be used, revision {head.revision}: {error.message}; "
                "mend the folder and raise its revision, or name another in RISKGATE_BUNDLE"
            ) from None

    def _use_keys(self) -> None:
        try:
            self._acceptance = Acceptance(load_policy_keys(self._settings.policy_keys))
        except PolicyKeyError as error:
            raise StartError(f"{error}; name a file that does in RISKGATE_POLICY_KEYS") from None

    async def _begin_shadow(self, head: BundleHead) -> None:
        """Let the bundle of the shadow's folder decide beside; where it cannot, only a first start ends with that."""
        folder = self._settings.shadow_bundle
        if folder is None:
            return
        try:
            self.shadow.begin_with(await asyncio.to_thread(lambda: DecisionEngine(load_bundle(folder))))
        except BundleError as error:
            told = f"{folder}: {error}; mend the bundle, or name another in RISKGATE_SHADOW_BUNDLE"
            if not head.revision:
                raise StartError(told) from None
            _log.error("the shadow bundle cannot be used, so none decides beside the active one", problem=told)

    async def begin(self) -> None:
        """Begin to follow database and folder, and to let the shadow decide; SIGHUP looks at the folder at once."""
        self._tasks += [asyncio.create_task(self._keep_up()), asyncio.create_task(self.shadow.run(self._core))]
        hangup.subscribe(self._look_now)

    async def end(self) -> None:
        """End what begin() began."""
        hangup.unsubscribe(self._look_now)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _look_now(self) -> None:
        self._tasks.append(asyncio.create_task(self.look_at_folder(now=True)))

    async def show(self, who: Principal, bundle_hash: str = "") -> BundleView:
        """Return what decides, with the files of the live bundle or of the one with this hash.

        Raise NotFound NOT_EXPLAINABLE and Unavailable STORE_UNAVAILABLE.
        """
        _require_reader(who)
        await self.refresh()
        live, beside = await self._heads()
        shadow, engine = self.shadow, self.shadow.engine
        if engine is not None and engine.bundle.hash != beside.hash:
            beside = BundleHead(engine.bundle.revision, engine.bundle.hash, FOLDER, activated_by=ITSELF.subject)
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
        """Return the newest moves of both slots, newest first. Raise PermissionDenied ROLE_REQUIRED."""
        _require_reader(who)
        return await self._core.database.read(lambda connection: rows.list_activations(connection, limit))

    async def _kept(self, bundle_hash: str) -> Mapping[str, str]:
        kept = await self._core.database.read(lambda connection: rows.find_files(connection, bundle_hash))
        if kept is None:
            raise NotFound(
                "NOT_EXPLAINABLE", f"no bundle {bundle_hash} is kept here", metadata={"bundle_hash": bundle_hash}
            )
        return kept

    async def validate(self, who: Principal, parts: Parts) -> tuple[str, BundleReport]:
        """Check a bundle and run its cases, in a thread; return its hash, empty where it has none."""
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
        """Let a bundle be the active one of a slot; see the module.

        Raise PermissionDenied ROLE_REQUIRED, InvalidArgument BUNDLE_INVALID, PermissionDenied BUNDLE_UNSIGNED,
        FailedPrecondition BUNDLE_CASES_FAILED, BUNDLE_ROLLBACK and BUNDLE_REVISION_TOO_HIGH, and Unavailable
        STORE_UNAVAILABLE; all but the first and the last are recorded.
        """
        who.require(Role.INSTALLATION_OPERATOR)
        candidate = await self._accept(who, ACTIVATION, lambda: read_parts(parts), skip_cases=skip_cases)
        return await self._activate_and_tell(who, candidate, Slot.SHADOW if shadow else Slot.LIVE, ACTIVATION)

    async def end_shadow(self, who: Principal) -> Activated:
        """Let nothing decide beside the live bundle any more."""
        who.require(Role.INSTALLATION_OPERATOR)
        return await self._activate_and_tell(who, None, Slot.SHADOW, ACTIVATION)

    async def roll_back(self, who: Principal, bundle_hash: str = "") -> Activated:
        """Let a bundle that is kept here decide again: the one with this hash, or the one before the active one.

        Raise PermissionDenied ROLE_REQUIRED and BUNDLE_UNSIGNED, NotFound BUNDLE_NOT_FOUND, FailedPrecondition
        BUNDLE_ROLLBACK where another was activated meanwhile, DataLoss, and Unavailable STORE_UNAVAILABLE.
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
        """Follow the database: loads the active bundle where it is another one than the one that decides here.

        One that cannot be loaded suspends every decision; deciding on by the old one would undo the activation.
        """
        async with self._lock:
            at = time.monotonic()
            live, shadow = await self._heads()
            await self._follow_live(live)
            self._core.live.looked(at)
            await self._follow_shadow(shadow)

    async def look_at_folder(self, *, now: bool = False) -> None:
        """Hand in the folder's bundle where it has changed and, unless ``now``, have stood still since the last look.

        Whatever is wrong with it, the live bundle stays: the fault is logged, recorded, and told by GetBundle.
        """
        if not await asyncio.to_thread(self._watch.changed, now=now):
            return
        try:
            candidate = await self._accept(ITSELF, FOLDER, lambda: read_folder(self._watch.folder))
            await self._activate_and_tell(ITSELF, candidate, Slot.LIVE, FOLDER)
        except STORE_FAILED as error:
            self._watch.forget()  # the store could not take it: look again
            _log.warning("the bundle of the folder waits for the store", reason=error.reason)
        except DomainError:
            return  # told, logged and recorded where it was refused

    async def _keep_up(self) -> None:
        """Follow database and folder for ever; the database twice as often as it must, so that no request has to."""
        for turn in itertools.count():
            await asyncio.sleep(self._settings.bundle_poll_seconds / 2)
            try:
                await self.refresh()
                if self._settings.watch_bundle and turn % 2:
                    await self.look_at_folder()
            except DomainError as error:
                _log.warning("the active bundle could not be asked for", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - a replica that stops following would decide by an old bundle
                _log.error("following the active bundle failed", error=type(error).__name__)

    # ---- accepting --------------------------------------------------------------------------------------------------

    async def _accept(
        self, who: Principal, source: str, read: Callable[[], BundleFiles], *, skip_cases: bool = False
    ) -> Candidate:
        """Read, check and prepares a bundle, in a thread. A refusal is recorded before it is raised."""
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
        """Activate while the service runs: the first bundle at a start is news to nobody."""
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
        """Let the bundle that is the active one now decide here, too."""
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
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being loaded, the old one must not decide
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
        """Load a kept bundle, which must still be the one that was activated, and signed by a key trusted today.

        Raise BundleError, PermissionDenied BUNDLE_UNSIGNED, NotFound and DataLoss.
        """
        texts = await self._kept(head.hash)

        def prepare() -> DecisionEngine:
            files = read_parts((name, text.encode()) for name, text in texts.items())
            if files.hash != head.hash:
                raise BundleError(head.hash, 0, f"was altered in the database: its files are {files.hash}")
            self._acceptance.signer_of(files, head.revision)
            return DecisionEngine(read_bundle(files))

        return await asyncio.to_thread(prepare)


def _require_reader(who: Principal) -> None:
    """Raise PermissionDenied ROLE_REQUIRED unless the caller may see what decides."""
    if not who.roles & {Role.AUDITOR, Role.OPERATOR, Role.INSTALLATION_OPERATOR}:
        who.require(Role.POLICY_ADMIN)


def _target(connection: Connection, bundle_hash: str) -> tuple[BundleHead, BundleHead]:
    """Return the active head, and the bundle to go back to. Raise NotFound BUNDLE_NOT_FOUND."""
    active = rows.find_head(connection, Slot.LIVE)
    if bundle_hash:
        revision = rows.find_revision(connection, bundle_hash)
        if revision:
            return active, BundleHead(revision, bundle_hash)
        told = f"no bundle {bundle_hash} is kept here; see `riskgate policy history`"
    else:
        before = rows.find_before(connection, active.hash)
        if before is not None:
            return active, before.head
        told = f"no bundle decided here before revision {active.revision}, as far as is known; name one by its hash"
    raise NotFound("BUNDLE_NOT_FOUND", told, metadata={"bundle_hash": bundle_hash})
