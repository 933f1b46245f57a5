"""Gates to compare with, and RiskGate's decision in this process for analysis."""

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
from phylactery_understanding.interpretation.model import Interpretation

from benchmarks.agentdojo.parts import Answer, Call, Json, Said, Session, Shown, compact

_CALLER, _SITE = Caller("user", "bench"), CallSite("thread", "run")
_SAID = {Decision.ALLOW: Said.ALLOW, Decision.AUTH_REQUIRED: Said.ASK, Decision.BLOCKED: Said.BLOCK}


class Open:
    """A gate that allows everything."""

    async def begin(self, words: str, meant: Interpretation | None = None) -> Session:  # noqa: ARG002 - the protocol's
        """Return the gate itself: there is no state."""
        return self

    async def evaluate(self, call_id: str, call: Call) -> Answer:  # noqa: ARG002 - the call is ignored
        """Allow the call."""
        return Answer(Said.ALLOW)

    async def approve(self, call_id: str, call: Call, answer: Answer) -> Answer:  # noqa: ARG002
        """Allow the approved call."""
        return Answer(Said.ALLOW)

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:  # noqa: ARG002
        """Return True: no permit is needed."""
        return True

    async def observe(self, call_id: str, call: Call, answer: Answer, shown: Shown) -> None:
        """No-op."""

    async def end(self) -> None:
        """No-op."""


class AskOnWrite(Open):
    """The common framework approach: an approval for every call that changes something."""

    def __init__(self, tools: Mapping[str, CatalogTool]) -> None:
        self._tools = tools

    async def evaluate(self, call_id: str, call: Call) -> Answer:  # noqa: ARG002
        """Require an approval for everything but reads."""
        return Answer(Said.ALLOW if self._tools[call.tool].effect == "read" else Said.ASK)


class Inside:
    """RiskGate's decision in this process: the same facts and policies, without wire, log and permits."""

    def __init__(self, bundle: Path) -> None:
        self._engine = DecisionEngine(load_bundle(bundle))

    async def begin(self, words: str, meant: Interpretation | None = None) -> Session:
        """Begin a task."""
        return _InsideSession(self._engine, words, meant)


class _InsideSession(Open):
    def __init__(self, engine: DecisionEngine, words: str, meant: Interpretation | None) -> None:
        self._engine = engine
        self._index = TaskIndex([read_words(words, interpretation=meant)])
        self._used: list[tuple[str, str]] = []
        """The used requests of executed calls, and those calls: RiskGate counts these when a permit is redeemed."""

    async def evaluate(self, call_id: str, call: Call) -> Answer:
        """Compute the facts and evaluate the policies."""
        verdict, facts = self._decide(call_id, call)
        return Answer(_SAID[verdict.decision], _why(verdict, facts), facts, verdict.approval_class or "")

    async def starts(self, call_id: str, call: Call, answer: Answer) -> bool:  # noqa: ARG002
        """Use up the request that allowed the call; an approved call has none."""
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
        """Add the result to the index."""
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
    """Write the default bundle with a suite's tools added; for a name in both, the suite's tool is used."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        bundle = Path(folder) / "bundle"
        copytree(default_bundle_folder(), bundle, ignore=ignore_patterns("tests"))
        tools = {one["name"]: one for file in (bundle, catalog) for one in _entries(file)}
        (bundle / "tools.yaml").write_text(yaml.safe_dump({"tools": list(tools.values())}, allow_unicode=True))
        yield bundle


def _entries(folder: Path) -> list[Json]:
    return list(yaml.safe_load((folder / "tools.yaml").read_text())["tools"])
