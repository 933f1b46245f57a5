"""Several RiskGate processes over one database, and the rows they left."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path

import sqlalchemy as sa
from grpc import aio

from tests.support.contracts.refusals import refusal_of
from tests.support.processes.forks import Forked


class Rival:
    """A RiskGate process."""

    def __init__(self, name: str, folder: Path, bundle: Path, database: str, crash_at: str = "") -> None:
        """Start the process; ``database`` is a URL, empty for the folder's SQLite file."""
        self.ready = folder / f"{name}.json"
        environment = os.environ | {
            "RISKGATE_DATA_DIR": str(folder),
            "RISKGATE_PORT": "0",
            "RISKGATE_READY_FILE": str(self.ready),
            "RISKGATE_BUNDLE": str(bundle),
            "RISKGATE_INSTANCE": name,
            "CRASH_SERVICE": "riskgate",
            "CRASH_AT": crash_at,
        }
        if database:
            environment["RISKGATE_DATABASE_URL"] = database
        self.process = Forked("tests.support.processes.crashing", environment=environment)

    async def connect(self) -> None:
        """Wait until it serves, and open a channel."""
        deadline = time.monotonic() + 60
        while not self.ready.exists():
            assert self.process.poll() is None, "the service ended before it served"
            assert time.monotonic() < deadline, "the service did not start"
            await asyncio.sleep(0.02)
        port = json.loads(self.ready.read_text())["port"]
        self.channel = aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])

    async def stop(self) -> None:
        """Stop the process, unless it has ended."""
        await self.channel.close()
        if self.process.poll() is None:
            self.process.terminate()
        await asyncio.to_thread(self.process.wait, 60)


def rows_of(folder: Path, url: str, table: str) -> int:
    """Return the number of rows of a table."""
    engine = sa.create_engine(url or f"sqlite:///{folder}/riskgate.db")
    with engine.connect() as connection:
        count = int(connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one())
    engine.dispose()
    return count


def reason_of(error: BaseException) -> str:
    """Return the reason of a refused call."""
    assert isinstance(error, aio.AioRpcError)
    return refusal_of(error).reason
