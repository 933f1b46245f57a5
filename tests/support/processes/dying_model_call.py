"""A single model call of a run in its own process, which kills itself with SIGKILL at a crash point.

python -m tests.support.processes.dying_model_call DATABASE_URL ENDPOINT_URL HOLDER CRASH_POINT
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from phylactery_agent.llm_client.router import Models
from phylactery_agent.runtime.turn.model_session import RunModels
from phylactery_chassis.util import crashpoints

from tests.support.agent.inspector import LocalInspector
from tests.support.agent.models import HELLO, config_of
from tests.support.agent.stores import T1, open_stores


async def main(database: str, endpoint: str, holder: str, crash_at: str) -> None:
    """Claim the waiting turn and call the model; return only if the crash point is not reached."""

    def die(name: str) -> None:
        if name == crash_at:
            os.kill(os.getpid(), signal.SIGKILL)

    crashpoints.install(die)
    with open_stores(database) as stores:
        claim = await stores.claims.claim_next(T1, holder)
        assert claim is not None
        models = Models(config_of(endpoint))
        await (
            RunModels(models, stores.database, stores.clock)
            .of(claim.lease, LocalInspector())
            .reply(HELLO, key="plan:1")
        )
        await models.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
