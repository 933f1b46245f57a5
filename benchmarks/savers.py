"""Our checkpoint saver compared with LangGraph's: an 8-node async graph, a durable checkpoint after every node.

Ours and the stock saver alternate within one run, so that a temporarily slow machine slows both. LangGraph's in-memory
saver, which is not durable, is the upper bound: no durable saver can do more runs per second.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypedDict

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_chassis.db.database import Database
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from benchmarks.delay import delayed
from benchmarks.measure import Sample, emit, sample
from tests.support.servers import postgres

_NODES = 8
_RUNS = {1: 40, 16: 192, 64: 256}
_ROUNDS = 3
_POOL = 16
Saver = BaseCheckpointSaver[Any]
Pair = tuple[Saver, Saver]


class _State(TypedDict, total=False):
    """The state of a run: a window of messages, a plan, and small fields."""

    messages: list[dict[str, str]]
    plan: list[dict[str, Any]]
    step: int
    status: str


async def run() -> None:
    """Print the lines of the savers."""
    if postgres.binaries() is None:
        raise SystemExit("PostgreSQL is not installed (Debian: postgresql), and half of the savers need it")
    async with _sqlite() as pair:
        for concurrency in _RUNS:
            await _compare("sqlite", pair, concurrency)
    with postgres.running(sync=True) as cluster:
        url = postgres.create_database(cluster.url, "bench")
        async with _postgres(url) as pair:
            for concurrency in _RUNS:
                await _compare("postgres", pair, concurrency)
        folder = Path(url.partition("host=")[2])
        with delayed(folder, 1) as near:
            async with _postgres(url.replace(str(folder), str(near))) as pair:
                await _compare("postgres_1ms", pair, 64)


async def _compare(store: str, pair: Pair, concurrency: int) -> None:
    """Print the throughput of our saver relative to the stock one: the median of alternating rounds."""
    measured: tuple[list[_Measured], ...] = ([], [], [])
    for number in range(_ROUNDS):
        for saver, samples in zip((*pair, InMemorySaver()), measured, strict=True):
            samples.append(await _measure(saver, concurrency, f"{store}-{number}"))
    ours, stock, floor = ([one.sample.per_second for one in samples] for samples in measured)
    emit(
        f"saver_{store}_c{concurrency}_ratio",
        statistics.median(mine / theirs for mine, theirs in zip(ours, stock, strict=True)),
        "times",
        runs_per_s=statistics.median(ours),
        stock_runs_per_s=statistics.median(stock),
        in_memory_runs_per_s=statistics.median(floor),
        p95_ms=statistics.median(one.sample.percentile_ms(95) for one in measured[0]),
        stock_p95_ms=statistics.median(one.sample.percentile_ms(95) for one in measured[1]),
        cpu_ms=statistics.median(one.cpu_ms for one in measured[0]),
        stock_cpu_ms=statistics.median(one.cpu_ms for one in measured[1]),
        in_memory_cpu_ms=statistics.median(one.cpu_ms for one in measured[2]),
    )


class _Measured:
    """A round: its sample, and the processor time per run."""

    def __init__(self, taken: Sample, cpu_seconds: float) -> None:
        self.sample = taken
        self.cpu_ms = cpu_seconds * 1_000 / len(taken.latencies)


async def _measure(saver: Saver, concurrency: int, name: str) -> _Measured:
    graph = _graph(saver)
    first: dict[str, Any] = {
        "messages": [{"id": f"u{i}", "role": "user", "content": "a message of some length " * 4} for i in range(10)],
        "plan": [{"id": "1", "tool": "read_file", "args": {"path": "notes.txt"}}],
        "step": 0,
    }

    async def once(number: int) -> object:
        config: RunnableConfig = {"configurable": {"thread_id": f"{name}-{concurrency}-{number}"}}
        return await graph.ainvoke(first, config, durability="sync")

    before = time.process_time()
    taken = await sample(once, calls=_RUNS[concurrency], concurrency=concurrency, warmup=0)
    return _Measured(taken, time.process_time() - before)


def _graph(saver: Saver) -> CompiledStateGraph[Any, Any, Any, Any]:
    graph: Any = StateGraph(_State)  # its overloads do not accept a generated function

    def node(number: int) -> Callable[[_State], Any]:
        async def work(state: _State) -> dict[str, Any]:
            told = {"id": f"m{number}", "role": "assistant", "content": f"step {number} of the run is done"}
            return {"messages": [*state["messages"][-19:], told], "step": number, "status": "running"}

        return work

    for number in range(_NODES):
        graph.add_node(f"n{number}", node(number))
        graph.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    graph.add_edge(f"n{_NODES - 1}", END)
    compiled: CompiledStateGraph[Any, Any, Any, Any] = graph.compile(checkpointer=saver)
    return compiled


@asynccontextmanager
async def _sqlite() -> AsyncIterator[Pair]:
    """Yield our saver and the stock one, both durable at every commit."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        database = _opened(f"sqlite:///{folder}/ours.db")
        try:
            async with aiosqlite.connect(f"{folder}/stock.db") as connection:
                stock = AsyncSqliteSaver(connection)
                await stock.setup()
                await connection.execute("PRAGMA synchronous=FULL")
                yield Checkpoints(database), stock
        finally:
            database.close()


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[Pair]:
    database = _opened(url)
    try:
        async with AsyncConnectionPool[Any](
            url.replace("+psycopg", ""),
            min_size=_POOL,
            max_size=_POOL,
            kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
        ) as pool:
            stock = AsyncPostgresSaver(pool)
            await stock.setup()
            yield Checkpoints(database), stock
    finally:
        database.close()


def _opened(url: str) -> Database:
    database = Database(url)
    database.migrate("phylactery_agent")
    return database
