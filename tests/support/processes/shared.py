"""Stacks that tests use one after another, each as a tenant of its own; a service dies where a test says.

To start the three services takes most of the time of a test that kills one of them. The one that is started in place of
the dead one serves the next test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from phylactery_chassis.util.ids import new_id
from phylactery_cli.supervisor import Stack

from tests.support.databases.invariants import at_rest
from tests.support.processes.agents import wait_until
from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person, lasting_ports, lines, sandbox
from tests.support.riskgate.asking_bundle import asks_first

_ROOT = Path(__file__).resolve().parents[3]
_MOST = 2


class Tenant:
    """A shared stack as one test sees it: with a tenant that no other test has, and files of its own."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.name = stack, new_id("tenant")

    def person(self, subject: str = "ana") -> Person:
        """Return somebody of this tenant."""
        return Person(self.stack, subject, tenant=self.name)

    @property
    def sandbox(self) -> Path:
        """The folder of the files of the tenant's Ana."""
        return sandbox(self.stack, tenant=self.name)

    def lines(self, name: str = "log.txt") -> list[str]:
        """Return the lines of a file the agent writes: one line per effect."""
        return lines(self.stack, name, tenant=self.name)

    def crash_at(self, service: str, point: str) -> None:
        """Make a running service die at a crash point of docs/effects.md; times (agent.5#2) are counted from now."""
        file = Path(self.stack.extra_env[service]["CRASH_FILE"])
        whole = file.with_suffix(".new")
        whole.write_text(point)
        whole.rename(file)


class SharedStacks:
    """The stacks of a run by their kind; the last few go on running."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        """``folder`` makes a new folder."""
        self._folder = folder
        self._running: dict[str, Stack] = {}

    def tenant(self, kind: str = "", make_env: Callable[[], Mapping[str, Mapping[str, str]]] = dict) -> Tenant:
        """Return a new tenant of a stack that asks about every write, where nothing is under way.

        ``make_env`` returns the environment of each service, with a new database if it names one: another folder has
        other keys.
        """
        stack = self._running.pop(kind, None) or self._start(make_env())
        self._running[kind] = stack
        while len(self._running) > _MOST:
            self._running.pop(next(iter(self._running))).stop()
        wait_until(lambda: at_rest(database_url(stack)), "rest")
        return Tenant(stack)

    def close(self) -> None:
        """Stop them all; what a failed test left behind is no concern of the next one."""
        while self._running:
            self._running.popitem()[1].stop()

    def _start(self, env: Mapping[str, Mapping[str, str]]) -> Stack:
        folder = self._folder()
        everywhere = {"PYTHONPATH": str(_ROOT), "PATH": os.environ["PATH"]}
        extra = {
            name: {
                **everywhere,
                "CRASH_SERVICE": name,
                "CRASH_FILE": str(folder / f"{name}.crash"),
                **env.get(name, {}),
            }
            for name in FREE_PORTS
        }
        extra["agent"].setdefault("AGENT_APPROVAL_POLL_SECONDS", "0.2")
        if "RISKGATE_BUNDLE" not in extra["riskgate"]:
            extra["riskgate"]["RISKGATE_BUNDLE"] = str(asks_first(folder / "bundle"))
        modules = dict.fromkeys(FREE_PORTS, "tests.support.processes.crashing")
        stack = ForkedStack(folder / "data", lasting_ports(), extra_env=extra, modules=modules)
        stack.start()
        return stack


def database_url(stack: Stack) -> str:
    """Return the URL of the database of a stack's agent."""
    own = f"sqlite:///{stack.data_dir / 'agent' / 'agent.db'}"
    return stack.extra_env["agent"].get("AGENT_DATABASE_URL") or own
