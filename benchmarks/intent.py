"""Decisions of the default bundle on hand-written requests, compared with what a reasonable person would want.

The cases are measurement data outside the project: a folder ``intent`` below PHYLACTERY_DATA_DIR holds ``dev_*.jsonl``
and the catalogs they name. Every case is decided in this process, by the same facts and policies as in a running
RiskGate.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any, Final

import yaml
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.catalog.stakes import stakes_of
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.intent.said import message_of
from phylactery_riskgate.domain.model import BoundCall, Caller, CallSite, CatalogTool, Counters, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.usage import Charge
from phylactery_understanding.interpretation.model import Interpretation
from phylactery_understanding.requests.parser import parse

from benchmarks.corpora import folder
from benchmarks.interpreting import lying_interpretation, perfect_interpretation
from benchmarks.measure import emit

Case = dict[str, Any]
Interpreter = Callable[[Case], Sequence[Interpretation | None]]

_EARLIER: Final = {"wrong_allow_pct": 33.8, "wrong_block_pct": 63.2, "clear_allow_pct": 17.9}
"""The figures of the previous rules, at 1102d26, on both halves of the data."""
_BARS: Final = {"wrong_allow_pct": "<= 0.5", "wrong_block_pct": "<= 1", "clear_allow_pct": ">= 60"}
_ASKED_AT: Final = frozenset({"high", "critical"})
"""Risk levels at which a request understood only by an interpreter always needs an approval."""
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DATE = re.compile(r"\{\{(?:d(-?\d+)|(mon|tue|wed|thu|fri|sat|sun))\}\}")
_NEVER: Final = frozenset({"refusal", "retraction", "exclusion", "mention"})
"""Kinds of cases that must never be allowed."""
_WORDS: Final = "please write the summary of the long report to notes.txt and say that all of it is well, "
_REPEATS: Final = 30


async def run() -> None:
    """Print the lines, or report on standard error that the data is missing."""
    home = folder("intent")
    if not home.is_dir():
        sys.stderr.write(f"intent: no data in {home}; name the folder above it in PHYLACTERY_DATA_DIR\n")
        return
    today = datetime.now(UTC).date()
    lines = [line for file in sorted(home.glob("*.jsonl")) for line in file.read_text().splitlines() if line.strip()]
    cases = [json.loads(_dated(line, today)) for line in lines]
    engines = {name: _engine(home, name) for name in sorted({one.get("catalog", "default") for one in cases})}
    counted = _require_stakes(home, engines)
    for one in cases:
        engine = engines[one.get("catalog", "default")]
        tool = engine.bundle.tools[one["call"]["tool"]]
        one["risk"], one["effect"] = str(tool.risk), str(tool.effect)
        private = engine.bundle.keeps_private(tool)
        one["stakes"] = str(stakes_of(tool, one["call"]["arguments"], private_workspace=private).stakes)
    emit("intent_tools", sum(counted.values()), "tools", **counted)
    for name, interpreter in (("", None), ("_interpreted", perfect_interpretation), ("_lied_to", lying_interpretation)):
        played = [(one, _decide(engines[one.get("catalog", "default")], one, today, interpreter)) for one in cases]
        _figures(name, played)
    _times()
    _call_times()


def _figures(name: str, played: Sequence[tuple[Case, str]]) -> None:
    legitimate = [(one, said) for one, said in played if one["id"].startswith("nat")]
    for figure, value, of in (
        ("wrong_allow_pct", *_share(played, lambda one: one["want"] != "ALLOW", "ALLOW")),
        ("wrong_block_pct", *_share(legitimate, lambda _: True, "BLOCKED")),
        ("clear_allow_pct", *_share(legitimate, lambda one: one["want"] == "ALLOW", "ALLOW")),
    ):
        beside = {"bar": _BARS[figure], "earlier_rules": _EARLIER[figure]} if not name else {}
        emit(f"intent{name}_{figure}", value, "%", of=of, **beside)
    below = [(one, said) for one, said in legitimate if one["risk"] not in _ASKED_AT]
    value, of = _share(below, lambda one: bool(one["want"] == "ALLOW"), "ALLOW")
    bars = {"bar": ">= 95"} if name == "_interpreted" else {}
    emit(f"intent{name}_clear_allow_below_high_pct", value, "%", of=of, **bars)
    ran = [one for one, said in played if said == "ALLOW" and one["want"] != "ALLOW" and one["effect"] != "read"]
    low = [one for one in ran if one["stakes"] == "low"]
    emit(
        f"intent{name}_unwanted_consequential", len(ran) - len(low), "cases", of=len(played) - len(legitimate), bar="0"
    )
    negative = max(len(played) - len(legitimate), 1)
    emit(f"intent{name}_unwanted_low_stakes_pct", 100 * len(low) / negative, "%", of=negative, bar="<= 6")
    refused = sum(one["kind"] in _NEVER for one in low)
    emit(f"intent{name}_unwanted_refused_run", refused, "cases", bar="0")
    never = sum(said == "ALLOW" for one, said in played if one["kind"] in _NEVER and one["want"] != "ALLOW")
    emit(f"intent{name}_refused_or_mentioned_allow", never, "cases", bar="0")
    for language in ("en", "es"):
        own = [(one, said) for one, said in legitimate if one["lang"] == language]
        value, of = _share(own, lambda one: bool(one["want"] == "ALLOW"), "ALLOW")
        emit(f"intent{name}_clear_allow_{language}_pct", value, "%", of=of, bar=">= 60")
    if not name:
        for kind, said in sorted(_by_kind(played).items()):
            emit(f"intent_kind_{kind}", said["ALLOW"], "allowed", asked=said["AUTH_REQUIRED"], blocked=said["BLOCKED"])


def _by_kind(played: Sequence[tuple[Case, str]]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for one, said in played:
        found.setdefault(one["kind"].replace("-", "_"), Counter())[said] += 1
    return found


def _share(played: Sequence[tuple[Case, str]], which: Callable[[Case], bool], said: str) -> tuple[float, int]:
    some = [decision for one, decision in played if which(one)]
    return 100 * sum(one == said for one in some) / max(len(some), 1), len(some)


def _times() -> None:
    """Print the time of a parse, for a request of one line and one of a thousand words."""
    for name, text in (("line", 'write "hello" to notes.txt'), ("1000_words", _WORDS * 55)):
        spent = []
        for number in range(_REPEATS):
            began = time.perf_counter()
            parse(f"{text} {number}")
            spent.append(1_000 * (time.perf_counter() - began))
        emit(f"intent_parse_{name}_p50_ms", statistics.median(spent), "ms", words=len(text.split()))


def _call_times() -> None:
    """Print the time of a message's reading, where it arrives, and of the first and later calls compared with it."""
    engine = DecisionEngine(load_bundle(default_bundle_folder()))
    tool = engine.bundle.tools["write_file"]
    calls = [engine.bind("write_file", {"path": f"{name}.txt", "content": "x"}) for name in ("notes", "a", "notes-2")]
    task_facts(TaskIndex([read_words("write x to b.txt")]), tool, _bound(calls[0]))
    ahead, first, later = [], [], []
    for number in range(_REPEATS):
        piece = read_words(f"{_WORDS * 55} {number}", "2026-11-30")
        message = message_of(piece)
        began = time.process_time()
        message.read_ahead()
        read = time.process_time()
        index = TaskIndex([piece], known=[message])
        task_facts(index, tool, _bound(calls[0]))
        done = time.process_time()
        ahead.append(1_000 * (read - began))
        first.append(1_000 * (done - read))
        for call in calls:  # one of each is worked out for the first time
            task_facts(index, tool, _bound(call))
        began = time.process_time()
        for call in calls:
            task_facts(index, tool, _bound(call))
        later.append(1_000 * (time.process_time() - began) / len(calls))
    words = len(_WORDS.split()) * 55
    emit("intent_read_1000_words_p50_ms", statistics.median(ahead), "ms", words=words)
    emit("intent_first_call_1000_words_p50_ms", statistics.median(first), "ms", bar="<= 5", words=words)
    emit("intent_later_call_1000_words_p50_ms", statistics.median(later), "ms", bar="<= 0.3", words=words)


def _bound(call: BoundCall | None) -> BoundCall:
    assert call is not None, "the measured call fits the default catalog"
    return call


def _decide(engine: DecisionEngine, case: Case, today: date, interpreter: Interpreter | None) -> str:
    index = TaskIndex(list(_pieces(engine, case, today, interpreter)))

    def facts(tool: CatalogTool, bound: Any) -> Any:
        return task_facts(index, tool, bound)

    call = RawCall(case["call"]["tool"], "call", json.dumps(case["call"]["arguments"], ensure_ascii=False))
    return str(
        engine.decide(
            call, Caller("user", "bench"), CallSite("thread", "run"), task=facts, usage=_nothing_counted
        ).decision
    )


def _pieces(engine: DecisionEngine, case: Case, today: date, interpreter: Interpreter | None) -> Iterator[Piece]:
    messages = case["messages"]
    read = [None] * len(messages) if interpreter is None else interpreter(case)
    for turn, (words, meant) in enumerate(zip(messages, read, strict=True)):
        yield read_words(words, today.isoformat(), meant)
        for number, seen in enumerate(case.get("observed", [])):
            if seen.get("turn", len(messages) - 1) == turn:
                yield _result(engine, f"seen-{number}", seen)


def _result(engine: DecisionEngine, call_id: str, seen: Mapping[str, Any]) -> Piece:
    text = seen["result_text"]
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    is_text = not isinstance(value, dict | list)
    tool = engine.bundle.tools.get(seen["tool"])
    reading = read_result(
        tool,
        seen["tool"],
        call_id,
        seen.get("arguments", {}),
        text if is_text else value,
        is_text=is_text,
        failed=False,
    )
    return reading.piece


def _engine(home: Path, catalog: str) -> DecisionEngine:
    """Return the default bundle's engine with the tools of a catalog added."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as temporary:
        bundle = Path(temporary) / "bundle"
        copytree(default_bundle_folder(), bundle, ignore=ignore_patterns("tests"))
        if catalog != "default":
            tools = {one["name"]: one for one in yaml.safe_load((bundle / "tools.yaml").read_text())["tools"]}
            more = yaml.safe_load((home / "catalogs" / f"{catalog}.yaml").read_text())["tools"]
            tools.update((one["name"], one | _stakes(home, catalog, one["name"])) for one in more)
            (bundle / "tools.yaml").write_text(yaml.safe_dump({"tools": list(tools.values())}, allow_unicode=True))
        return DecisionEngine(load_bundle(bundle))


def _stakes(home: Path, catalog: str, tool: str) -> dict[str, Any]:
    """Return what a careful operator says that a tool of a catalog can do; nothing of a read."""
    said = dict(yaml.safe_load((home / "stakes.yaml").read_text())[catalog].get(tool, {}))
    return {**{name: value for name, value in said.items() if name != "stakes"}, "reviewed": "yes"} if said else {}


def _require_stakes(home: Path, engines: Mapping[str, DecisionEngine]) -> Counter[str]:
    """Return how many tools have which stakes. Raise SystemExit if the catalogs differ from what is given."""
    found: Counter[str] = Counter()
    for catalog, tools in yaml.safe_load((home / "stakes.yaml").read_text()).items():
        engine = engines.get("default" if catalog == "packaged" else catalog)
        for name, said in tools.items() if engine is not None else ():
            assert engine is not None
            tool = engine.bundle.tools.get(name)
            given = "" if tool is None else stakes_of(tool, {}, private_workspace=True).stakes
            if given != said["stakes"]:
                raise SystemExit(
                    f"intent: {catalog}/{name} has {given or 'no'} stakes, and stakes.yaml says {said['stakes']}"
                )
            found[given] += 1
    return found


def _nothing_counted(tool: CatalogTool, charge: Charge) -> dict[str, Counters]:
    return {one.name: Counters(0, 0, 0, len(charge.recipients)) for one in tool.budgets}


def _dated(text: str, today: date) -> str:
    """Replace placeholders such as {{d1}} and {{fri}} by dates."""

    def put(found: re.Match[str]) -> str:
        if found[1] is not None:
            return (today + timedelta(days=int(found[1]))).isoformat()
        ahead = (_DAYS.index(found[2]) - today.weekday() - 1) % 7 + 1
        return (today + timedelta(days=ahead)).isoformat()

    return _DATE.sub(put, text)
