"""The tiers of the suite, a pytest plugin: which test is of which, what failed, what is too long for the first one.

``pytest --tier NAME`` runs one tier. A test's markers say where it belongs, by what it was measured to take (see
tests/README.md). Without the option all run but those of the nightly tier, which hold both cores for hours: they run
with ``--tier nightly``, or where a test is named, ``FILE::TEST``.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest

FIRST: Final = "first"
NIGHTLY: Final = "nightly"
TIERS: Final = (NIGHTLY, "timing", "slow", FIRST)
"""In this order: a test with several of these markers belongs to the first of them."""
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
LONG_SECONDS: Final = 3.0
"""What is longer does not belong to the first tier."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("tiers")
    group.addoption("--tier", choices=TIERS, help="run the tests of this tier only")
    group.addoption("--outcome", metavar="FILE", help="write what passed, failed and was skipped to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Note the outcome where all reports arrive: in the only process, or in the one that started the workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Outcome(config))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files that have no test of the tier: to import every file takes a good part of a minute."""
    tier = config.option.tier
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return (tier and is_test and has_none_of(tier, collection_path)) or None


@pytest.hookimpl(tryfirst=True)  # pytest-xdist appends the groups to the ids afterwards
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of tiers that were not asked for, and make sure that each tier finds its own.

    Those of a file that share what it starts run in one worker: in three of them it would be started three times.
    """
    for path, tier in {(item.path, tier_of(item)) for item in items}:
        if has_none_of(tier, path):
            raise pytest.UsageError(
                f"{path}: has a test of the tier {tier}, which a run of that tier does not look for"
            )
    named = any("::" in one for one in config.args)
    asked = {config.option.tier} if config.option.tier else {*TIERS} if named else {*TIERS} - {NIGHTLY}
    config.hook.pytest_deselected(items=[item for item in items if tier_of(item) not in asked])
    items[:] = [item for item in items if tier_of(item) in asked]
    for item in items:
        if shares(item) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def shares(item: pytest.Item) -> bool:
    """Return whether a test uses a fixture of its whole file."""
    fixtures = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
    return any(one.scope == "module" for definitions in fixtures for one in definitions)


def tier_of(item: pytest.Item) -> str:
    """Return the tier of a test."""
    return next((tier for tier in TIERS if tier != FIRST and item.get_closest_marker(tier)), FIRST)


def has_none_of(tier: str, file: Path) -> bool:
    """Return whether a file of tests surely has none of the tier, as its text shows: it need not be imported then.

    A marker of the whole file puts all of its tests in that tier or one before it. Other markers stand in the file, or
    with the fixtures it uses: in the conftest files of its folders.
    """
    text = file.read_text(encoding="utf-8")
    whole = re.search(r"^pytestmark = (.*(?:\n .*)*)", text, re.MULTILINE)
    earlier = TIERS[: TIERS.index(tier)]
    if whole is not None and any(f"mark.{one}" in whole[1] for one in earlier):
        return True
    if tier == FIRST or f"mark.{tier}" in text:  # all that is not marked is of the first tier
        return False
    marked = _marked_fixtures(tier, _conftests(file.parent))
    return marked is not None and not any(re.search(rf"\b{name}\b", text) for name in marked)


@cache
def _marked_fixtures(tier: str, conftests: tuple[str, ...]) -> frozenset[str] | None:
    """Return the fixtures that put a test that asks for them in a tier; None if the marker stands elsewhere too."""
    trees = [ast.parse(text) for text in conftests if f"mark.{tier}" in text]
    fixtures = [node for tree in trees for node in tree.body if isinstance(node, _FUNCTIONS)]
    decorators = {node.name: " ".join(map(ast.unparse, node.decorator_list)) for node in fixtures}
    marked = {name for name, decorator in decorators.items() if f"mark.{tier}" in decorator}
    stand = sum(text.count(f"mark.{tier}") for text in conftests)
    if stand != sum(one.count(f"mark.{tier}") for one in decorators.values()):
        return None
    return frozenset(_asking_for(marked, conftests))


def _asking_for(names: set[str], conftests: tuple[str, ...]) -> set[str]:
    """Return these fixtures and all that ask for one of them, directly or indirectly."""
    nodes = [node for text in conftests for node in ast.walk(ast.parse(text))] if names else []
    asks = {
        node.name: {part.arg for part in node.args.args} | {word for word in names if repr(word) in ast.unparse(node)}
        for node in nodes
        if isinstance(node, _FUNCTIONS)
    }
    while more := {name for name, asked in asks.items() if name not in names and asked & names}:
        names |= more
    return names


@cache
def _conftests(folder: Path) -> tuple[str, ...]:
    """Return the texts of the conftest files of a folder and of those above it, up to that of all tests."""
    own = folder / "conftest.py"
    texts = (own.read_text(encoding="utf-8"),) if own.exists() else ()
    return texts if folder.name == "tests" or folder == folder.parent else (*texts, *_conftests(folder.parent))


def without_group(nodeid: str) -> str:
    """Return a test's id without the group that pytest-xdist appends to it, with which it cannot be run again.

    The ids of parameters end in "]", so an "@" after it, or in a name without parameters, begins a group.
    """
    name, at, group = nodeid.rpartition("@")
    return name if at and "]" not in group else nodeid


class Outcome:
    """What a run found, as the process that the tests report to sees it."""

    def __init__(self, config: pytest.Config) -> None:
        self._tier = config.option.tier
        self._file = config.option.outcome
        self._seconds: Counter[str] = Counter()
        self._selected: set[str] = set()
        self._ended: dict[str, str] = {}
        self._errors: list[str] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that could not be collected: a run of several workers goes on without it."""
        if report.failed:
            self._errors.append(report.nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what is to be run, where it is run in this process."""
        self._selected |= {without_group(item.nodeid) for item in session.items}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Note what is to be run, where workers run it."""
        self._selected |= {without_group(nodeid) for nodeid in ids}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a part of a test; a test has failed if any part has."""
        nodeid = without_group(report.nodeid)
        if not isinstance(report, pytest.SubtestReport):  # the time of a subtest is a part of its test's
            self._seconds[nodeid] += report.duration
        if report.failed or (report.outcome != "passed" and self._ended.get(nodeid) != "failed"):
            self._ended[nodeid] = report.outcome
        elif report.when == "call":
            self._ended.setdefault(nodeid, report.outcome)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what is too long for the first tier."""
        long = [(seconds, nodeid) for nodeid, seconds in self._seconds.items() if seconds > LONG_SECONDS]
        if self._tier == FIRST and long:
            terminalreporter.section(f"over {LONG_SECONDS:.0f} s: mend these or mark them slow")
            for seconds, nodeid in sorted(long, reverse=True):
                terminalreporter.write_line(f"{seconds:.1f} s {nodeid}")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the outcome down."""
        if self._file:
            by_outcome = {
                outcome: sorted(nodeid for nodeid, ended in self._ended.items() if ended == outcome)
                for outcome in ("failed", "skipped")
            }
            found = {
                "exit": int(exitstatus),
                "passed": sum(ended == "passed" for ended in self._ended.values()),
                "errors": sorted(set(self._errors)),
                "unfinished": sorted(self._selected - self._ended.keys()),
                **by_outcome,
            }
            text = json.dumps(found)
            Path(self._file).write_text(text, encoding="utf-8")
