"""The agent as the gateway asks it: always for one person, as a delegate."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final

from phylactery_client import Attachment, PhylacteryClient, ShownCall
from phylactery_client.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    NotFoundError,
    PhylacteryError,
    UnimplementedError,
)
from phylactery_client.results import Event, PendingApproval, Thread

from phylactery_gateway.channels.messages import File
from phylactery_gateway.channels.port import Action, SendError
from phylactery_gateway.store.outbox import FILE_CHANGED
from phylactery_gateway.store.turns import Conversation, Turn

_CALL_SECONDS: Final = 20.0
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}")


class NotWaitingError(Exception):
    """An approval that is answered or read no longer waits, or its arguments are others.

    ``state`` is what became of it, as RiskGate names it, '' if that is not known.
    """

    def __init__(self, state: str = "") -> None:
        super().__init__(state)
        self.state = state


class Agent:
    """The agent, with a connection shared by everybody."""

    def __init__(self, connect: Callable[[str], PhylacteryClient], token: Callable[[], str]) -> None:
        """``connect`` opens a client with a token; ``token`` returns the present one."""
        self._connect, self._token = connect, token
        self._used = token()
        self._client = connect(self._used)

    def of(self, conversation: Conversation) -> PhylacteryClient:
        """Return the client for the person of a conversation."""
        return self._for(conversation.subject)

    def _for(self, subject: str) -> PhylacteryClient:
        if (token := self._token()) != self._used:  # running calls keep the connection they have
            self._used, self._client = token, self._connect(token)
        return self._client.acting_for(subject)

    async def give(self, conversation: Conversation, turn: Turn, files: Sequence[Attachment] = ()) -> None:
        """Give a turn to the agent and return as soon as it has it. The same turn again is the same run.

        It is not waited for what is served before it in the thread: what the person says next may be to stop that.

        Raise NotWaitingError if a pressed button's approval no longer waits, PhylacteryError as the call does.
        """
        if turn.stale:
            raise NotWaitingError
        client = self.of(conversation)
        if turn.approval_id:
            await self._answer(client, turn)
            return
        own, shown = turn.text, _card(turn)
        with contextlib.suppress(AlreadyExistsError):  # it has this turn
            await client.send_message(
                "\n".join(filter(None, (own, turn.passed_on))),
                thread_id=conversation.thread_id,
                shown=shown,
                quoted=turn.quotes and shown is not None,
                named=[ShownCall(name, args_hash, number=number) for name, args_hash, number in turn.named],
                attachments=files,
                own_spans=[(0, len(own))] if own else [],
                message_starts=turn.starts,
                sender_phone=_phone(conversation),
                wait=False,
                request_id=turn.turn_id,
                timeout=_CALL_SECONDS * (1 + len(files)),
            )

    async def end_lift(self, conversation: Conversation) -> None:
        """End the lift of the person, whose identity changed since an operator lifted it. Raise PhylacteryError."""
        with contextlib.suppress(
            NotFoundError, UnimplementedError
        ):  # nobody lifted them, or an agent that lifts nobody
            await self.of(conversation).end_lift(timeout=_CALL_SECONDS)

    async def _answer(self, client: PhylacteryClient, turn: Turn) -> None:
        """Answer exactly the approvals of a button, by id and the hash of what was shown. Raise NotWaitingError.

        What comes of it is told in the thread. The same turn again is the same answer, also after it closed its
        approval.
        """
        try:
            await client.answer_call(
                turn.approval_id,
                turn.args_hash,
                approve=turn.approve,
                also=turn.also,
                wait=False,
                request_id=turn.turn_id,
                timeout=_CALL_SECONDS,
            )
        except (NotFoundError, FailedPreconditionError) as error:
            raise NotWaitingError(error.metadata.get("state", "")) from None
        except AlreadyExistsError:
            return  # it has this turn, from a gateway that sent it as words

    async def read_approval(self, conversation: Conversation, turn: Turn) -> PendingApproval:
        """Return all of the approval that a turn wants to read. Raise NotWaitingError, PhylacteryError."""
        try:
            return await self.of(conversation).read_approval(turn.reads, turn.args_hash, timeout=_CALL_SECONDS)
        except (NotFoundError, FailedPreconditionError) as error:
            raise NotWaitingError(error.metadata.get("state", "")) from None

    async def thread(self, conversation: Conversation) -> Thread | None:
        """Return the state of a conversation's thread, None if the agent has none. Raise PhylacteryError."""
        try:
            return await self.of(conversation).get_thread(conversation.thread_id, timeout=_CALL_SECONDS)
        except NotFoundError:
            return None

    async def watch(self, conversation: Conversation, after: int, idle_seconds: float) -> AsyncGenerator[Event]:
        """Yield a thread's events after a sequence until none comes for a while. Raise PhylacteryError."""
        stream = self.of(conversation).watch_thread(conversation.thread_id, after_sequence=after, reconnect=False)
        async with aclosing(stream) as events:
            while True:
                try:
                    async with asyncio.timeout(idle_seconds):
                        event = await anext(events)
                except (TimeoutError, StopAsyncIteration):
                    return
                yield event

    async def file(self, subject: str, thread_id: str, file: File) -> bytes:
        """Return a file that the agent sent, of the size and hash its message has.

        Raise SendError: RETRY, or FAIL with the reason if the agent has no such content any more.
        """
        client = self._for(subject)
        try:
            found = await client.fetch_file(thread_id, file.file_id, max_bytes=file.size, timeout=_CALL_SECONDS)
        except (NotFoundError, FailedPreconditionError, DataLossError) as error:
            raise SendError(Action.FAIL, error.reason or error.code.name) from None
        except PhylacteryError as error:
            raise SendError(Action.RETRY, error.reason or error.code.name) from None
        if found.sha256 != file.sha256:
            raise SendError(Action.FAIL, FILE_CHANGED)
        return found.data

    async def close(self) -> None:
        """Close the connection."""
        await self._client.close()


def _phone(conversation: Conversation) -> str:
    """Return the number the person writes from, with its country; empty on a channel without numbers."""
    written = f"+{conversation.address.identities.get('phone', '').lstrip('+')}"
    return written if _PHONE.fullmatch(written) else ""


def _card(turn: Turn) -> PendingApproval | None:
    """Return the shown approvals as one card: a plain yes answers these and no others."""
    cards = [PendingApproval(one, "", "", "self", (), None, "", args_hash) for one, args_hash in turn.shown]
    if not cards:
        return None
    first, *others = cards
    return PendingApproval(first.approval_id, "", "", "self", (), None, "", first.args_hash, tuple(others))
