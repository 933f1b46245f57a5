"""The gates of comparison, and RiskGate's own parts in this process for looking closely."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import yaml
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.intent.facts import task_facts, uses_ask
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.intent.reading import read_result, read_words
from phylactery_riskgate.domain.intent.understood import Uses
from phylactery_riskgate.domain.model import Caller, CallSite, CatalogTool, Decision, RawCall, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from benchmarks.agentdojo.parts import Answer, Call, Json, Said, Session, Shown, compact

_CALLER, _SITE = Caller("user", "bench"), CallSite("thread", "run")
_SAID = {Decision.ALLOW: Said.ALLOW, Decision.AUTH_REQUIRED: Said.ASK, Decision.BLOCKED: Said.BLOCK}


class Open:
    """No gate: everything runs."""

    async def begin(self, words: str) -> Session:  # noqa: ARG002 - a gate is told the words
        """Return itself: there is nothing to keep."""
        return self

    async def evaluate(self, call_id: str, call: Call) -> Answer:  # noqa: ARG002 - it looks at nothing
        """Allow it."""
        return Answer(Said.ALLOW)

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:  # noqa: ARG002
        """Allow what was approved."""
        return Answer(Said.ALLOW)

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:  # noqa: ARG002
        """Need no permit."""
        return True

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        """Keep nothing."""

    async def end(self) -> None:
        """Have nothing to end."""


class AskOnWrite(Open):
    """What frameworks offer: a question about every call that changes something."""

    def __init__(self, tools: Mapping[str, CatalogTool]) -> None:
        self._tools = tools

    async def evaluate(self, call_id: str, call: Call) -> Answer:  # noqa: ARG002
        """Ask about everything but reading."""
        return Answer(Said.ALLOW if self._tools[call.tool].effect == "read" else Said.ASK)


class Inside:
    """RiskGate's decision in this process: the same facts and policies, without the wire, the log and the permits."""

    def __init__(self, bundle: Path) -> None:
        self._engine = DecisionEngine(load_bundle(bundle))

    async def begin(self, words: str) -> Session:
        """Open a task."""
        return _InsideSession(self._engine, words)


class _InsideSession(Open):
    def __init__(self, engine: DecisionEngine, words: str) -> None:
        self._engine = engine
        self._index = TaskIndex([read_words(words)])
        self._used: list[tuple[str, str]] = []
        """The asks of calls that ran, and those calls: what a running RiskGate counts when a permit is redeemed."""

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        """Compute the facts and ask the policies."""
        verdict, facts = self._decide(call_id, call)
        return Answer(_SAID[verdict.decision], _why(verdict, facts), facts, verdict.approval_class or "")

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:  # noqa: ARG002
        """Use up the ask that allowed the call; what was approved has none."""
        if answer.ticket is not None and uses_ask(answer.ticket, self._engine.bundle.tools[call.tool]):
            self._used.append((answer.ticket.ask, _name(call.tool, call.arguments)))
        return True

    def _decide(self, call_id: str, call: Call) -> tuple[Verdict, TaskFacts | None]:
        told: list[TaskFacts] = []

        def facts(tool: CatalogTool, bound: Any) -> TaskFacts:
            same = _name(tool.name, call.arguments)
            uses = Uses(Counter(ask for ask, _ in self._used), {ask for ask, done in self._used if done == same})
            told.append(task_facts(self._index, tool, bound, uses))
            return told[-1]

        raw = RawCall(call.tool, call_id, compact(call.arguments))
        verdict = self._engine.decide(raw, _CALLER, _SITE, task=facts)
        return verdict, told[-1] if told else None

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:  # noqa: ARG002
        """Read the result into the index."""
        reading = read_result(
            self._engine.bundle.tools.get(call.tool),
            call.tool,
            call_id,
            call.arguments,
            shown.value,
            is_text=shown.is_text,
            failed=shown.failed,
        )
        self._index = self._index.with_piece(reading.piece)


def _name(tool: str, arguments: Json) -> str:
    return f"{tool} {compact(arguments)}"


def _why(verdict: Verdict, facts: TaskFacts | None) -> str:
    policies = ",".join(verdict.policy_ids) or ",".join(one.code for one in verdict.reasons)
    return f"{policies} {json.dumps(facts.to_json(), ensure_ascii=False) if facts else ''}".strip()


@contextmanager
def bundle_of(catalog: Path) -> Iterator[Path]:
    """Make the default bundle with a suite's tools beside the agent's own; of a name both have, the suite's."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        bundle = Path(folder) / "bundle"
        copytree(default_bundle_folder(), bundle, ignore=ignore_patterns("tests"))
        tools = {one["name"]: one for file in (bundle, catalog) for one in _entries(file)}
        (bundle / "tools.yaml").write_text(yaml.safe_dump({"tools": list(tools.values())}, allow_unicode=True))
        yield bundle


def _entries(folder: Path) -> list[Json]:
    return list(yaml.safe_load((folder / "tools.yaml").read_text())["tools"])
