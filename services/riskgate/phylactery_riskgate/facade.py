"""Application facade: every use case of RiskGate, independent of gRPC."""

from __future__ import annotations

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import annotate
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.requests import ApproveInput, GetInput, ListInput, RejectInput
from phylactery_riskgate.approvals.service import ApprovalService
from phylactery_riskgate.approvals.vote_proofs import VoteProofs
from phylactery_riskgate.approvals.watch import Watches
from phylactery_riskgate.audit.commitments import KeyedHashes
from phylactery_riskgate.audit.heads import HeadStore
from phylactery_riskgate.audit.log import AuditLog
from phylactery_riskgate.audit.opening import open_log
from phylactery_riskgate.audit.reader import AuditReader
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.bundles.lifecycle import Policies
from phylactery_riskgate.bundles.live import LiveBundle
from phylactery_riskgate.decisions.access import AccessEvaluations
from phylactery_riskgate.decisions.batch import Batches
from phylactery_riskgate.decisions.context import ApprovalSeen, DecisionContext
from phylactery_riskgate.decisions.evaluate import Evaluation
from phylactery_riskgate.decisions.explain import Explaining
from phylactery_riskgate.decisions.questions import Evaluated
from phylactery_riskgate.decisions.redeem import Redeemed, Redemptions
from phylactery_riskgate.decisions.replay import Replays
from phylactery_riskgate.decisions.requests import EvaluateInput, OutcomeInput, RedeemInput
from phylactery_riskgate.decisions.stops import Control
from phylactery_riskgate.decisions.usage import Counting
from phylactery_riskgate.domain.bundle.bundle import BundleError
from phylactery_riskgate.keys.journal import KeyRecords
from phylactery_riskgate.keys.live import LiveKeys
from phylactery_riskgate.keys.ring import KeyRing
from phylactery_riskgate.privacy.retention import Retention
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.redemptions import Redemption
from phylactery_riskgate.tasks.inspection import Inspecting
from phylactery_riskgate.tasks.service import Tasks


class RiskGate:
    """One RiskGate over one database; each error is documented at the implementation of its use case."""

    def __init__(
        self, database: Database, live: LiveBundle, keys: LiveKeys, settings: RiskGateSettings, clock: Clock
    ) -> None:
        """Assemble the parts; open() must be called before the first request."""
        self.live = live
        self._audit = AuditLog(
            settings.log_name,
            vault=Vault(keys.ring.data_key),
            data_key_id=keys.ring.data_key_id,
            signer=lambda: keys.ring.signer,
            heads=HeadStore(settings.heads_dir),
            sign_every=settings.checkpoint_every,
        )
        self._core = DecisionContext(
            database,
            live,
            keys,
            self._audit,
            clock,
            settings.issuer,
            settings.permit_ttl_seconds,
            settings.decision_ttl_seconds,
            Counting(keys.ring.data_key),
            KeyedHashes(keys.ring.data_key),
            VoteProofs(keys.ring.data_key),
        )
        self.tasks = Tasks(self._core, keys.ring.data_key, settings)
        self._key_records = KeyRecords(self._audit, "service")
        self._keys_on_record: KeyRing | None = None
        self._evaluation = Evaluation(self._core, self.tasks)
        self.batches = Batches(self._core, self._evaluation)
        self.access = AccessEvaluations(self._core)
        self._redemptions = Redemptions(self._core)
        self._answers = ApprovalService(self._core)
        self.watches = Watches(self._core, self._answers)
        self.auditing = AuditReader(self._core, self.tasks)
        self.policies = Policies(self._core, settings)
        self.replays = Replays(self._core)
        self.explaining = Explaining(self._core, self.tasks)
        self.inspecting = Inspecting()
        self.control = Control(self._core)
        self.retention = Retention(self._core, settings.retain_decisions_days)

    async def open(self, fault: BundleError | None = None) -> None:
        """Open the audit log and settle which bundle decides.

        fault is the reason why the bundle folder holds no usable bundle. Raise audit.LogError if keys and database do
        not belong together, HeadsDisagree if a log differs from its signed head, and StartError and DomainErrors.
        """
        core, believed = self._core, self._core.keys.ring.verifying.values()

        def open_(connection: Connection) -> None:
            open_log(connection, self._audit, core.votes, believed=believed, now_us=core.clock.now_us())

        await core.write(open_)
        self._audit.opened()
        await self.policies.open(fault)

    @property
    def issuer(self) -> str:
        """Return the issuer name in permits and receipts."""
        return self._core.issuer

    @property
    def problem(self) -> str:
        """Return why nothing can be decided (bundle, or a log that differs from its signed head), or an empty text."""
        return self.policies.problem or self._audit.problem

    @property
    def keys(self) -> LiveKeys:
        """Return the signing and verification keys, as they are in the keys folder now."""
        return self._core.keys

    async def evaluate(self, who: Principal, asked: EvaluateInput) -> Evaluated:
        """Decide about one call; delegates to Evaluation.evaluate."""
        answer = await self._evaluation.evaluate(who, asked)
        annotate({semconv.GEN_AI_TOOL: asked.call.tool, semconv.DECISION: str(answer.record.decision)})
        return answer

    async def redeem(self, who: Principal, asked: RedeemInput) -> Redeemed:
        """Consume a permit; delegates to Redemptions.redeem."""
        return await self._redemptions.redeem(who, asked)

    async def report_outcome(self, who: Principal, asked: OutcomeInput) -> Place:
        """Record an outcome and return its place in the audit log; delegates to Redemptions.report_outcome."""
        return await self._redemptions.report_outcome(who, asked)

    async def without_outcome(self, tenant: str, *, older_than_seconds: int) -> list[Redemption]:
        """Return redeemed calls without a reported outcome; delegates to Redemptions.without_outcome."""
        return await self._redemptions.without_outcome(tenant, older_than_seconds=older_than_seconds)

    async def approve(self, who: Principal, asked: ApproveInput) -> ApprovalSeen:
        """Record an approving vote; delegates to Answers.approve."""
        return await self._answers.approve(who, asked)

    async def reject(self, who: Principal, asked: RejectInput) -> ApprovalSeen:
        """Record a rejecting vote; delegates to Answers.reject."""
        return await self._answers.reject(who, asked)

    async def cancel(self, who: Principal, asked: RejectInput) -> ApprovalSeen:
        """Withdraw an approval request; delegates to Answers.cancel."""
        return await self._answers.cancel(who, asked)

    async def get_approval(self, who: Principal, asked: GetInput) -> ApprovalSeen:
        """Return one approval; delegates to Answers.get."""
        return await self._answers.get(who, asked)

    async def list_approvals(self, who: Principal, asked: ListInput) -> tuple[list[ApprovalSeen], str]:
        """Return a page of approvals and the next page's token; delegates to Answers.list_page."""
        return await self._answers.list_page(who, asked)

    async def sign_head(self) -> bool:
        """Sign the audit log's head if the log has grown; return True if it has."""
        now_us = self._core.clock.now_us()
        return await self._core.write(lambda connection: self._audit.sign_head(connection, now_us))

    async def record_keys(self) -> int:
        """Record changes of the signing keys, whatever made them; return the number of entries written."""
        ring = self._core.keys.ring
        if ring is self._keys_on_record:
            # compared by identity: a reload that restores earlier keys follows other keys, which are on record
            return 0
        now_us = self._core.clock.now_us()
        count = await self._core.write(lambda connection: self._key_records.record(connection, ring.public, now_us))
        self._keys_on_record = ring
        return count

    async def prune_usage(self) -> int:
        """Drop budget counts of windows that ended long ago; return how many were dropped."""
        now_us = self._core.clock.now_us()
        return await self._core.write(lambda connection: self._core.usage.prune(connection, now_us))
