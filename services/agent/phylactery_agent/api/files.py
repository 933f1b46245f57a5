"""ChatService.FetchFile: the content of files that the agent sent, as it was permitted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import FailedPrecondition, ResourceExhausted
from phylactery_chassis.rpc.validation import EdgeModel, Identifier

from phylactery_agent.api.mapping import owner_of
from phylactery_agent.ports import SentFile
from phylactery_agent.runtime.effects.sent_files import SentFileStore
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.tools.executor import Executor

MAX_FETCHES: Final = 4
"""Maximum number of files that one caller fetches at a time: each is in memory until it is sent."""
FETCH_SECONDS: Final = 60.0
_CHUNK: Final = 64 * 1024

Part = SentFile | bytes


class FetchRequest(EdgeModel):
    """FetchFile."""

    thread_id: Identifier
    file_id: Identifier


@dataclass(eq=False)
class FileEdge:
    """The implementation of FetchFile, without gRPC."""

    files: SentFileStore
    executor: Executor
    seconds: float = FETCH_SECONDS
    _open: Counter[Owner] = field(default_factory=Counter, init=False)

    async def fetch(self, principal: Principal, request: FetchRequest) -> AsyncGenerator[Part]:
        """Yield the description of a file of one of the caller's threads, then its content in chunks.

        A reader that is slower than ``seconds`` is cut off. Raise NotFound FILE_NOT_FOUND, FailedPrecondition
        FILE_CHANGED, ResourceExhausted TOO_MANY_FETCHES.
        """
        owner = owner_of(principal)
        with self._counted(owner), self._timed():
            file = await self.files.get(owner.thread_key(request.thread_id), request.file_id)
            data = await self.executor.sent_content(owner.tenant, owner.user_id, file.path, file.sha256)
            if data is None:
                raise FailedPrecondition(
                    "FILE_CHANGED",
                    "the file was changed since it was permitted to be sent; ask for it again",
                    metadata={"file_id": request.file_id},
                )
            yield file
            for place in range(0, len(data), _CHUNK):
                yield data[place : place + _CHUNK]

    @contextmanager
    def _counted(self, owner: Owner) -> Iterator[None]:
        if self._open[owner] >= MAX_FETCHES:
            raise ResourceExhausted(
                "TOO_MANY_FETCHES",
                f"this user fetches {MAX_FETCHES} files already; end one of those streams first",
                metadata={"limit": str(MAX_FETCHES)},
            )
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Cancel the call at the time limit, wherever it waits: for the disk or for a reader that takes nothing."""
        task = asyncio.current_task()
        assert task is not None, "a call is served by a task"
        timer = asyncio.get_running_loop().call_later(self.seconds, task.cancel)
        try:
            yield
        finally:
            timer.cancel()


def part_message(part: Part) -> chat_pb2.FetchFileResponse:
    """Return a part of the answer in wire form."""
    if isinstance(part, bytes):
        return chat_pb2.FetchFileResponse(data=part)
    return chat_pb2.FetchFileResponse(file=event_pb2.SentFile(**asdict(part)))
