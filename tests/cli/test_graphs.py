"""phylactery graphs as a person uses it, against the three real services."""

from __future__ import annotations

import json

import pytest
from phylactery_agent.graph.core.registry import GRAPH_NAMES, SPECS
from phylactery_agent.graph.core.spec import mermaid
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from typer.testing import CliRunner

from tests.support.processes.stack import ForkedStack

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cli-graphs")]


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """The services as phylactery up starts them; answers where the agent is."""
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    with running(ForkedStack(tmp_path_factory.mktemp("graphs"), dict.fromkeys(quiet, 0), extra_env=quiet)) as stack:
        yield stack.target("agent")


@pytest.fixture
def graphs(agent):
    """Run a command; return its result."""
    options = ["--target", agent, "--language"]
    return lambda *arguments, language="en": CliRunner().invoke(app, ["graphs", *options, language, *arguments])


def test_graphs_are_listed_in_the_persons_language_and_shown_as_mermaid(graphs):
    listed = graphs("list")
    assert listed.exit_code == 0, listed.output
    assert [line.split()[0] for line in listed.output.splitlines()] == ["graph", "secured", *sorted(GRAPH_NAMES[1:])]
    assert SPECS["secured"].descriptions["es"] in graphs("list", language="es").output
    assert json.loads(graphs("list", "--json").stdout.splitlines()[0])["name"] == "secured"
    for name in GRAPH_NAMES:
        assert graphs("show", name).output == mermaid(SPECS[name])
    assert graphs("show").output == mermaid(SPECS["secured"])
    assert json.loads(graphs("show", "secured", "--json").stdout)["nodes"] == list(SPECS["secured"].nodes)


def test_a_graph_nobody_knows_is_said_in_one_sentence(graphs):
    failed = graphs("show", "secure")
    assert (failed.exit_code, failed.stderr) == (
        1,
        f"graphs: NOT_FOUND (GRAPH_NOT_FOUND): there is no graph 'secure'; there are {', '.join(GRAPH_NAMES)}\n",
    )


def test_a_conversation_is_opened_with_the_graph_that_is_named_and_keeps_it(agent, tmp_path):
    def talk(graph, *lines, exit_code=0):
        options = ["--target", agent, "--thread", "named", "--language", "en", "--data-dir", str(tmp_path)]
        typed = "".join(f"{line}\n" for line in (*lines, "/quit"))
        done = CliRunner().invoke(app, ["chat", *options, "--graph", graph], input=typed)
        assert done.exit_code == exit_code, done.output
        return done.output

    assert "hi" in talk("react", "echo hi")
    assert "bye" in talk("", "echo bye")
    assert "the graph 'react' serves this thread" in talk("secured", "echo again", exit_code=1)
    assert "there is no graph 'nobody'" in talk("nobody", "echo again", exit_code=1)
