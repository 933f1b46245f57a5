"""The decision engine: guard, hash, bind, gather facts, evaluate policies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import cedarpy
from phylactery_chassis.auth.levels import GUEST
from phylactery_chassis.util.crypto import sha256

from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.catalog.stakes import SEEN_AS, stakes_of
from phylactery_riskgate.domain.catalog.submissions import Submitted, submitted
from phylactery_riskgate.domain.facts.facts import ContextBuilder, approved_value, without_values
from phylactery_riskgate.domain.facts.types import NotRepresentableError
from phylactery_riskgate.domain.intent.model import UNSHOWN, TaskFacts
from phylactery_riskgate.domain.model import (
    LOW_STAKES,
    BoundCall,
    Caller,
    CallSite,
    CatalogTool,
    Decision,
    Json,
    RawCall,
    Reason,
    Verdict,
)
from phylactery_riskgate.domain.pointers import MAX_POINTER, declared_pointer, pointer
from phylactery_riskgate.domain.policy.authorizer import Answer, Answers, Question, Subject
from phylactery_riskgate.domain.policy.binding import Binder, BindingError
from phylactery_riskgate.domain.policy.cedar_schema import action_groups, build_entity_schema
from phylactery_riskgate.domain.policy.evidence import UNREADABLE, TaskReader, known
from phylactery_riskgate.domain.policy.guard import MAX_BYTES, MAX_DEPTH, GuardError, read_arguments
from phylactery_riskgate.domain.policy.policies import APPROVED
from phylactery_riskgate.domain.policy.reasons import MAX_REASONS, budget_reason, doubts, policy_reason, reason
from phylactery_riskgate.domain.policy.slices import PolicySlice, slices_for, without_task_policies
from phylactery_riskgate.domain.policy.usage import (
    LINE_DELIVERED,
    MAX_RECIPIENTS,
    NO_USAGE,
    UNDO_FAILED,
    NotCountableError,
    Usage,
    UsageReader,
    read_usage,
)
from phylactery_riskgate.domain.views.visible import make_visible

_GUARD_LIMITS = {"TOO_DEEP": MAX_DEPTH, "TOO_LARGE": MAX_BYTES}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Precomputed data about one tool.

    ``private`` says that nothing but the agent reads the files it writes, ``asks_history`` that its stakes or policies
    depend on what became of its undo, or of the last turn's line. ``without_task`` is the same with fewer
    policies, if some of them do not apply to a call without a task.
    """

    tool: CatalogTool
    binder: Binder
    policies: PolicySlice
    context: ContextBuilder
    schema: cedarpy.Schema
    private: bool = False
    asks_history: bool = False
    without_task: Prepared | None = None


class Ruling(NamedTuple):
    """The policies' decision on a bound call."""

    decision: Decision
    reasons: tuple[Reason, ...]
    policy_ids: tuple[str, ...] = ()
    approval_class: str | None = None


class DecisionEngine:
    """A deterministic decision engine for one bundle: the same inputs always give the same verdict.

    It keeps nothing of a call but a cache of what its policies answered, so any number of threads may share one.
    """

    def __init__(self, bundle: Bundle) -> None:
        self._bundle, self._answers = bundle, Answers()
        groups = {name: action_groups(tool) for name, tool in bundle.tools.items()}
        slices, of_any_call = slices_for(bundle.policies, groups), without_task_policies(bundle.policies)
        fewer = slices if len(of_any_call) == len(bundle.policies) else slices_for(of_any_call, groups)
        self._prepared = {
            name: _prepare(tool, groups[name], bundle, slices[name], fewer[name]) for name, tool in bundle.tools.items()
        }
        self._satisfied = {
            one.name: tuple(lower.name for lower in bundle.classes if lower.rank <= one.rank) for one in bundle.classes
        }

    @property
    def bundle(self) -> Bundle:
        """The bundle in use."""
        return self._bundle

    def counts(self, tool: str) -> bool:
        """Return True if a tool's calls are decided with usage: a budget covers it, or its undo or the line counts."""
        prepared = self._prepared.get(tool)
        return prepared is not None and (bool(prepared.tool.budgets) or prepared.asks_history)

    def decide(
        self,
        call: RawCall,
        caller: Caller,
        site: CallSite,
        *,
        approved: frozenset[str] = frozenset(),
        usage: UsageReader | None = None,
        task: TaskReader | None = None,
    ) -> Verdict:
        """Decide one call; an invalid call is BLOCKED, never an exception.

        ``approved`` names the approval classes that people have really satisfied; each implies every lower class, and
        an unknown name is ignored. ``usage`` returns what budgets have counted, and is called only for a tool that one
        covers; without it such a call is bound and BLOCKED, until decide_again decides it. ``task`` returns what its
        task knows of the bound call; without it the call has no task.
        """
        prepared = self._prepared.get(call.tool)
        try:
            arguments = read_arguments(call)
        except GuardError as error:
            declared = frozenset[str]() if prepared is None else prepared.binder.declared
            path = make_visible(declared_pointer(error.place, declared), MAX_POINTER).text
            fault = reason(error.code, path=path, limit=_GUARD_LIMITS.get(error.code, 0))
            return self._blocked(prepared, "", (fault,))
        raw = canonical_bytes(arguments)
        raw_hash = sha256(raw)
        if call.raw_args_hash and call.raw_args_hash != raw_hash:
            return self._blocked(prepared, raw_hash, (reason("INTEGRITY_MISMATCH"),))
        if prepared is None:
            return self._blocked(prepared, raw_hash, (reason("UNKNOWN_TOOL"),))
        if call.tool_schema_hash and call.tool_schema_hash != prepared.tool.schema_hash:
            return self._blocked(prepared, raw_hash, (reason("SCHEMA_MISMATCH"),))
        try:
            bound = prepared.binder.bind(arguments, raw)
        except BindingError as error:
            return self._blocked(prepared, raw_hash, error.reasons)
        return self._rule(prepared, bound, raw_hash, self._subject(caller, site), approved, usage, task)

    def bind(self, tool: str, arguments: Json) -> BoundCall | None:
        """Return a call as bound for a decision, or None if the catalog has no such call."""
        prepared = self._prepared.get(tool)
        try:
            return None if prepared is None else prepared.binder.bind(arguments, canonical_bytes(arguments))
        except BindingError:
            return None

    def decide_again(
        self, verdict: Verdict, caller: Caller, site: CallSite, *, approved: frozenset[str], usage: UsageReader
    ) -> Verdict:
        """Decide the call of a verdict again, with the current approvals and usage.

        The task's facts stay as recorded. A verdict on a call that could not be bound is returned unchanged.
        """
        if verdict.bound is None:
            return verdict
        prepared = self._prepared[verdict.bound.tool]
        subject = self._subject(caller, site)
        return self._rule(prepared, verdict.bound, verdict.raw_args_hash, subject, approved, usage, known(verdict.task))

    def _rule(  # noqa: PLR0917 - both callers pass on all they have
        self,
        prepared: Prepared,
        bound: BoundCall,
        raw_hash: str,
        subject: Subject,
        approved: frozenset[str],
        reader: UsageReader | None,
        task: TaskReader | None,
    ) -> Verdict:
        satisfied = self._highest(approved)
        facts = _subject_facts(subject, satisfied)
        usage, told = NO_USAGE, self._told(prepared, bound, task)
        assessed = stakes_of(prepared.tool, bound.arguments, private_workspace=prepared.private)
        prepared = prepared if told.shown else prepared.without_task or prepared
        try:
            usage = read_usage(prepared.tool, bound, reader, asked=prepared.asks_history)
            if usage.undo_failed:
                tool = replace(prepared.tool, undoable=False)
                assessed = stakes_of(tool, bound.arguments, private_workspace=prepared.private)
            submission = submitted(prepared.tool, bound.arguments, told.form_run)
            given = {
                "usage": usage.value,
                "pathway": subject.pathway,
                "submission": submission._asdict(),
                "stakes": SEEN_AS[assessed.stakes],
            }
            context = prepared.context.build(bound, told, given)
            facts["context"] = without_values(context)
            ruling = _withheld(prepared.tool, subject, submission) or _over_budget(usage)
            if ruling is None:
                thread = prepared.policies.thread_of(subject.thread)
                asked = subject._replace(thread=thread, pathway="unspecified")  # the context has the pathway
                question = Question(prepared.schema, asked, prepared.tool.name, self._answers)
                ruling = self._ask(prepared, question, context, satisfied)
        except NotCountableError as error:
            ruling = Ruling(Decision.BLOCKED, (reason(error.code, path=error.path, limit=MAX_RECIPIENTS),))
        except NotRepresentableError as error:
            path = make_visible(pointer(error.place[1:]), MAX_POINTER).text
            ruling = Ruling(Decision.BLOCKED, (reason("VALUE_NOT_REPRESENTABLE", path=path),))
        except ValueError:
            # Cedar refused the entities or the request; the details are not for the caller.
            ruling = Ruling(Decision.BLOCKED, (reason("POLICY_ERROR"),))
        unsure = tuple(doubts(told)) if ruling.decision is Decision.AUTH_REQUIRED else ()
        reasons = (*ruling.reasons[: MAX_REASONS - len(unsure)], *unsure)
        return Verdict(
            decision=ruling.decision,
            reasons=reasons[:MAX_REASONS],
            bound=bound,
            approval_class=ruling.approval_class,
            policy_ids=ruling.policy_ids,
            bundle_revision=self._bundle.revision,
            bundle_hash=self._bundle.hash,
            risk=prepared.tool.risk,
            raw_args_hash=raw_hash,
            facts=facts,
            usage=usage.before,
            exceeded=tuple(usage.exceeded),
            task=told,
            stakes=assessed.stakes,
            stakes_reasons=assessed.reasons,
        )

    def _told(self, prepared: Prepared, bound: BoundCall, task: TaskReader | None) -> TaskFacts:
        """Return the task's facts; if they cannot be computed, the worst possible ones."""
        try:
            return UNSHOWN if task is None else task(prepared.tool, bound)
        except Exception:  # noqa: BLE001 - whatever was shown is untrusted, and no text may prevent a decision
            return UNREADABLE

    def _ask(self, prepared: Prepared, question: Question, context: Json, satisfied: tuple[str, ...]) -> Ruling:
        """Evaluate with the actual approvals, then with each higher class that the policies name, in ascending order.

        Without an approval the first evaluation is skipped if no permit could allow the call.
        """
        policies = prepared.policies
        hypothetical = [
            (name, classes)
            for name, classes in self._satisfied.items()
            if name in policies.classes and name not in satisfied
        ]
        asked: list[tuple[str, tuple[str, ...]]] = [("", satisfied), *hypothetical]
        if hypothetical and not satisfied and policies.always_needs_approval:
            asked = hypothetical
        forbids: tuple[str, ...] = ()
        for approval_class, classes in asked:
            answer = self._ask_once(prepared, question, context, classes)
            if not answer.clean:
                return Ruling(Decision.BLOCKED, (reason("POLICY_ERROR"),))
            if answer.allowed and approval_class:
                return self._approvable(policies, answer, approval_class, forbids)
            if answer.allowed:
                return _allowed(policies, answer)
            final = tuple(one for one in answer.policy_ids if one in policies.final)
            if final:
                return _forbidden(policies, final)
            forbids = answer.policy_ids
        return _forbidden(policies, forbids)

    def _ask_once(self, prepared: Prepared, question: Question, context: Json, satisfied: tuple[str, ...]) -> Answer:
        sets = prepared.policies.sets
        if prepared.context.asks_approved and not sets.asks_thread:
            context = {**context, APPROVED: approved_value(satisfied)}
        return question.ask(sets, context, satisfied)

    def _approvable(self, policies: PolicySlice, answer: Answer, needed: str, lifted: tuple[str, ...]) -> Ruling:
        """Return the ruling that a class is required, because of the forbids it lifts and the policies that name it."""
        naming = [one for one in answer.policy_ids if needed in policies.named[one]]
        makers = (*lifted, *naming) or answer.policy_ids
        asked = self._bundle.asked_as(needed)
        reasons = tuple(_explain("APPROVAL_REQUIRED", policies, one, approval_class=asked) for one in makers)
        if not self._bundle.answerable(asked):
            reasons = (*reasons, reason("APPROVAL_UNANSWERABLE", approval_class=asked))
        return Ruling(Decision.AUTH_REQUIRED, reasons, answer.policy_ids, asked)

    def _highest(self, approved: frozenset[str]) -> tuple[str, ...]:
        known = [one for one in self._bundle.classes if one.name in approved]
        return self._satisfied[known[-1].name] if known else ()

    def _subject(self, caller: Caller, site: CallSite) -> Subject:
        """Return the subject, with level and groups from the user's own credential, or the bundle if delegated."""
        entry = self._bundle.users.get((caller.tenant, caller.subject))
        groups = frozenset(entry.groups if entry else ())
        level = entry.level if entry else ""
        if caller.direct:
            groups |= caller.groups
            level = caller.level
        elif caller.level == GUEST:  # only an operator lifts a guest, and the delegate tells that; a bundle does not
            level = GUEST
        return Subject(
            subject=caller.subject,
            tenant=caller.tenant,
            level=level or self._bundle.levels[0],
            groups=tuple(sorted(groups)),
            thread=site.thread_id,
            thread_tenant=site.thread_tenant or caller.tenant,
            pathway=site.pathway,
        )

    def _blocked(self, prepared: Prepared | None, raw_hash: str, reasons: tuple[Reason, ...]) -> Verdict:
        return Verdict(
            decision=Decision.BLOCKED,
            reasons=reasons[:MAX_REASONS],
            bound=None,
            approval_class=None,
            policy_ids=(),
            bundle_revision=self._bundle.revision,
            bundle_hash=self._bundle.hash,
            risk=prepared.tool.risk if prepared else None,
            raw_args_hash=raw_hash,
            facts={},
            usage={},
        )


def _withheld(tool: CatalogTool, subject: Subject, submission: Submitted) -> Ruling | None:
    """Return the ruling that this person may not use a tool, or not like this, or None.

    It comes before the policies, so that no bundle, whatever it permits and however old it is, opens a tool to guests
    except by the level of the tool itself. What a form's run submits is the form's, which guests may fill in. A
    tool for forms alone is of no use outside of one.
    """
    if submission.registered:
        return None
    if tool.forms_only:
        return Ruling(Decision.BLOCKED, (reason("FORM_ONLY"),))
    if subject.level != GUEST or tool.level == GUEST:
        return None
    return Ruling(Decision.BLOCKED, (reason("NOT_FOR_GUESTS"),))


def _over_budget(usage: Usage) -> Ruling | None:
    reasons = tuple(budget_reason(name, limit) for name, limit in usage.exceeded.items())
    return Ruling(Decision.BLOCKED, reasons) if reasons else None


def _prepare(
    tool: CatalogTool, groups: frozenset[str], bundle: Bundle, policies: PolicySlice, fewer: PolicySlice
) -> Prepared:
    schema = build_entity_schema(tool.name, sorted(groups), bundle.levels)
    context, private = ContextBuilder(tool, policies.mentions), bundle.keeps_private(tool)
    usage = policies.mentions.part("usage")
    asks_history = (tool.undoable and tool.reach == "own" and tool.reviewed) or (
        usage is not None and any(usage.part(name) is not None for name in (UNDO_FAILED, LINE_DELIVERED))
    )
    whole = Prepared(tool, Binder(tool), policies, context, schema, private, asks_history)
    if len(fewer.policies) == len(policies.policies):
        return whole
    context = ContextBuilder(tool, fewer.mentions)
    return replace(whole, without_task=replace(whole, policies=fewer, context=context))


def _subject_facts(subject: Subject, satisfied: tuple[str, ...]) -> Json:
    return {
        "level": subject.level,
        "groups": list(subject.groups),
        "tenant": subject.tenant,
        "thread_tenant": subject.thread_tenant,
        "pathway": subject.pathway,
        "approved": list(satisfied),
        "context": {},
    }


def _allowed(policies: PolicySlice, answer: Answer) -> Ruling:
    for_stakes = all(policies.policies[one].low_stakes for one in answer.policy_ids)
    code = LOW_STAKES if for_stakes and answer.policy_ids else "POLICY_PERMIT"
    reasons = tuple(_explain(code, policies, one) for one in answer.policy_ids)
    return Ruling(Decision.ALLOW, reasons, answer.policy_ids)


def _forbidden(policies: PolicySlice, policy_ids: tuple[str, ...]) -> Ruling:
    if not policy_ids:
        return Ruling(Decision.BLOCKED, (reason("POLICY_NO_PERMIT"),))
    reasons = tuple(_explain("POLICY_FORBID", policies, one) for one in policy_ids)
    return Ruling(Decision.BLOCKED, reasons, policy_ids)


def _explain(code: str, policies: PolicySlice, policy_id: str, **values: object) -> Reason:
    policy = policies.policies[policy_id]
    return policy_reason(code, policy.id, policy.title, policy.title_es, **values)
