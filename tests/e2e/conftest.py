"""The three real services as processes, and a person who talks to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from phylactery_cli.supervisor import Stack

from tests.support.processes.shared import SharedStacks, Tenant
from tests.support.processes.stack import FREE_PORTS, ForkedStack, Person, lasting_ports
from tests.support.riskgate.asking_bundle import asks_first

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def make_stack(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Make stacks over one data folder, which ask about every write; every process is gone when the test ends."""
    made: list[Stack] = []

    def make(**env: dict[str, str]) -> Stack:
        everywhere = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        extra = {name: {**everywhere, **env.get(name, {})} for name in FREE_PORTS}
        extra["agent"].setdefault("AGENT_APPROVAL_POLL_SECONDS", "0.2")
        extra["riskgate"].setdefault("RISKGATE_BUNDLE", str(asks_first(tmp_path / "bundle")))
        made.append(ForkedStack(tmp_path / "data", lasting_ports(), extra_env=extra))
        return made[-1]

    yield make
    for stack in made:
        stack.stop()


@pytest.fixture(scope="session")
def shared_stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedStacks]:
    """The stacks that the tests of this process share."""
    stacks = SharedStacks(lambda: tmp_path_factory.mktemp("shared"))
    yield stacks
    stacks.close()


@pytest.fixture
def new_tenant(request: pytest.FixtureRequest, shared_stacks: SharedStacks) -> Iterator[Callable[..., Tenant]]:
    """Make tenants of running stacks by their kind; stacks that a test failed with are used no more."""
    before = request.session.testsfailed
    yield shared_stacks.tenant
    if request.session.testsfailed != before:
        shared_stacks.close()


@pytest.fixture
def stack(make_stack: Callable[..., Stack]) -> Stack:
    """The three services, serving."""
    made = make_stack()
    made.start()
    return made


@pytest.fixture
def ana(stack: Stack) -> Iterator[Person]:
    """Ana, on the stack."""
    with Person(stack, "ana") as person:
        yield person
