"""The guarded server as a child process: minimal environment, and an end that takes its whole process group along."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from mcp.shared.message import SessionMessage
from phylactery_client.guard.running import finished, uncancelled

from phylactery_mcp_proxy.settings import ServerTarget
from phylactery_mcp_proxy.upstream.messages import MAX_LINE_BYTES, Incoming, Streams, read_messages, write_messages

_LEAVE_SECONDS: Final = 2.0
_END_SECONDS: Final = 2.0
_LAUNCH: Final = (
    "import ctypes, os, sys\n"
    "try:\n"
    "    ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG, SIGKILL
    "except (AttributeError, OSError):\n"
    "    pass\n"
    "if os.getppid() != int(sys.argv[1]):\n"
    "    os._exit(1)\n"
    "os.execvpe(sys.argv[2], sys.argv[2:], os.environ)\n"
)
"""Execs the server after asking to be killed with its parent: a proxy that is killed leaves no server."""


class ServerFaultError(Exception):
    """Error for a server that cannot be used; the message is built in and contains nothing the server said."""


@asynccontextmanager
async def process_streams(target: ServerTarget) -> AsyncIterator[Streams]:
    """Start the server and yield the streams of its messages; end its group on exit.

    The incoming stream ends with the process, or when it breaks a limit. Its standard error is the proxy's own.

    Raises:
        ServerFaultError: The command does not exist or cannot be started.
    """
    # Not cancelled while it begins: asyncio waits for ever for pipes that it has not connected
    process, cancelled = await finished(_begun(target))
    if cancelled is not None:
        await uncancelled(_end(process))
        raise cancelled
    assert process.stdin is not None
    assert process.stdout is not None
    incoming_sent, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outgoing_read = anyio.create_memory_object_stream[SessionMessage](0)
    reading = asyncio.create_task(read_messages(process.stdout, incoming_sent))
    writing = asyncio.create_task(write_messages(process.stdin, outgoing_read))
    # a server that stops reading counts as ended, too
    writing.add_done_callback(lambda _: incoming_sent.close())
    try:
        yield incoming, outgoing
    finally:
        for job in (reading, writing):
            job.cancel()
        for stream in (incoming_sent, incoming, outgoing, outgoing_read):
            stream.close()
        with anyio.CancelScope(shield=True):  # which keeps off cancellations of anyio's scopes, and of no task
            await uncancelled(_end(process))
            await asyncio.gather(reading, writing, return_exceptions=True)


async def _begun(target: ServerTarget) -> Process:
    environment = target.environment()
    command = shutil.which(target.command[0], path=environment.get("PATH", os.defpath))
    if command is None:
        raise ServerFaultError("there is no such command")
    launched = (sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), command, *target.command[1:])
    try:
        return await asyncio.create_subprocess_exec(
            *launched, stdin=PIPE, stdout=PIPE, env=environment, start_new_session=True, limit=MAX_LINE_BYTES
        )
    except (OSError, ValueError):
        raise ServerFaultError("it cannot be started") from None


async def _end(process: Process) -> None:
    """Stop the server as the protocol specifies: close its input, then terminate, kill and reap its group."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, RuntimeError):
        process.stdin.close()
    if not await _gone(process, _LEAVE_SECONDS):
        _signal(process, signal.SIGTERM)
        await _gone(process, _END_SECONDS)
    _signal(process, signal.SIGKILL)  # whatever is left of the group, the leader or a child
    await _gone(process, _END_SECONDS)
    # a grandchild that left the group may hold the pipe open; closing this end lets go of it
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _gone(process: Process, seconds: float) -> bool:
    """Wait until the process has ended or the time is up. wait() would wait for its pipes, too."""
    ends = asyncio.get_running_loop().time() + seconds
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= ends:
            return False
        await asyncio.sleep(0.01)
    return True


def _signal(process: Process, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, what)
