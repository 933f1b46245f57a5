"""An MCP server as a child process: stdio transport, minimal environment, and termination of its process group.

The SDK's own transport reads lines of any length and logs lines that are not messages. A server may be hostile or
broken, so this transport limits both and does not log what the server prints.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import IO, Any, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse, jsonrpc_message_adapter

from phylactery_agent.tools.mcp.config import ServerConfig, ServerFaultError

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
MAX_NOISE_BYTES: Final = 64 * 1024 * 1024
"""How much a server may write between two answers that is no message, or a log message, before it is given up."""
_CHUNK: Final = 64 * 1024
_MESSAGE: Final = b'"jsonrpc"'
"""What every message holds."""
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
"""Script that execs the server after asking to be killed with its parent, so that a dying agent leaves no server."""

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


@asynccontextmanager
async def process_streams(config: ServerConfig) -> AsyncIterator[Streams]:
    """Start a server's process and yield the streams of its messages; terminate its whole group on exit.

    The incoming stream ends when the process does, or when it sends what no server may send.

    Raises:
        ServerFaultError: The command or folder does not exist.
        McpConfigError: A file of the configuration cannot be read.
    """
    with _stderr_of(config) as stderr:
        beginning = asyncio.create_task(_begun(config, stderr))
        # Not cancelled while it begins: asyncio waits for ever for pipes that it has not connected
        if cancelled := await _done(beginning):
            if beginning.exception() is None:
                await _whole(_end(beginning.result()))
            raise cancelled
        process = beginning.result()
    incoming_sent, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outgoing_read = anyio.create_memory_object_stream[SessionMessage](0)
    reading = asyncio.create_task(_read(process, incoming_sent))
    jobs = [reading, asyncio.create_task(_write(process, outgoing_read, incoming_sent, reading))]
    try:
        yield incoming, outgoing
    finally:
        for job in jobs:
            job.cancel()
        for stream in (incoming_sent, incoming, outgoing, outgoing_read):
            stream.close()
        await _whole(_end(process))
        await asyncio.gather(*jobs, return_exceptions=True)


@contextlib.contextmanager
def _stderr_of(config: ServerConfig) -> Iterator[IO[bytes] | int]:
    if config.stderr is None:
        yield DEVNULL
        return
    try:
        descriptor = os.open(config.stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ServerFaultError(f"its stderr file cannot be written ({error.strerror})") from None
    with os.fdopen(descriptor, "ab") as file:
        yield file


async def _begun(config: ServerConfig, stderr: IO[bytes] | int) -> Process:
    environment = config.environment()
    command = shutil.which(config.command[0], path=environment.get("PATH", os.defpath))
    if command is None:
        raise ServerFaultError(f"there is no command {config.command[0]!r}")
    launched = (sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), command, *config.command[1:])
    try:
        return await asyncio.create_subprocess_exec(
            *launched,
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            cwd=config.cwd,
            env=environment,
            start_new_session=True,
            limit=MAX_LINE_BYTES,
        )
    except OSError as error:
        raise ServerFaultError(f"it cannot be started ({error.strerror})") from None


async def _read(process: Process, incoming: MemoryObjectSendStream[Incoming]) -> None:
    """Forward messages until the server ends; pass over other lines, up to a limit for each answer."""
    assert process.stdout is not None
    noise = 0
    with incoming, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for size, lines in _arriving(process.stdout):
            noise += size
            for line in lines:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValueError, RecursionError):
                    continue
                if not is_log(message):
                    noise -= len(line)
                    await incoming.send(SessionMessage(message))
                if isinstance(message, JSONRPCResponse | JSONRPCError):
                    noise = 0
            if noise > MAX_NOISE_BYTES:
                return


def is_log(message: JSONRPCMessage) -> bool:
    """Return True for a log message, which nothing here reads."""
    return isinstance(message, JSONRPCNotification) and message.method == "notifications/message"


async def _arriving(pipe: asyncio.StreamReader) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield what arrives: its size, and the lines in it that may be messages, the last one also without its end.

    Log lines are told from messages in bulk, before they are parsed. A line that is longer than a message ends the
    stream if it begins like one, because it may be the answer that is waited for; any other is passed over.
    """
    held, size, passing = list[bytes](), 0, False
    while chunk := await pipe.read(_CHUNK):
        *ends, rest = chunk.split(b"\n")
        if ends:
            ends[0] = b"" if passing else b"".join((*held, ends[0]))
            held, size, passing = [], 0, False
        yield len(chunk), [line for line in ends if _MESSAGE in line]
        size += len(rest)
        held.append(rest)
        if size > MAX_LINE_BYTES:
            if not passing and held[0].lstrip().startswith(b"{"):
                return
            held, passing = [], True
        await asyncio.sleep(0)  # what is in the pipe already is read without waiting: others have their turn
    yield 0, [line for line in (b"".join(held),) if _MESSAGE in line and not passing]


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[Incoming],
    reading: asyncio.Task[None],
) -> None:
    """Write messages; a server that stops reading counts as ended, so its incoming stream is closed, too.

    What it wrote before is read first: an answer may be in the pipe, and without it a done effect is in doubt.
    """
    assert process.stdin is not None
    with contextlib.suppress(anyio.ClosedResourceError):
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
            except OSError:
                await asyncio.wait({reading}, timeout=_LEAVE_SECONDS)
                break
    incoming.close()


async def _end(process: Process) -> None:
    """Stop a server as the protocol specifies: close its input, then terminate, kill and reap its group."""
    assert process.stdin is not None
    with contextlib.suppress(OSError, RuntimeError):
        process.stdin.close()
    if not await _gone(process, _LEAVE_SECONDS):
        _signal(process, signal.SIGTERM)
        await _gone(process, _END_SECONDS)
    _signal(process, signal.SIGKILL)  # any remaining member of the group, the leader or a child
    await _gone(process, _END_SECONDS)
    # A grandchild that left the group can hold the pipe open; closing this end releases it.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _whole(work: Coroutine[Any, Any, None]) -> None:
    """Do all of the work, also if the caller is cancelled meanwhile: a server that is half ended would stay."""
    task = asyncio.create_task(work)
    if cancelled := await _done(task):
        raise cancelled
    task.result()


async def _done(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until a task is done, however often the caller is cancelled meanwhile; return the last cancellation."""
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


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
