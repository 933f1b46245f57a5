"""The resident helper: it holds the connection to RiskGate and what is known of each session.

Of several that start for one folder exactly one is left, the one with the lock. It ends after a while without events.
One that serves HTTP as well takes the place of such a helper, and stays.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc
import phylactery_client
from phylactery_client.guard import Guard
from phylactery_client.riskgate import RiskGateClient

from phylactery_hooks import hosts
from phylactery_hooks.hook import HELPER, LOCK, MAX_BYTES, check_folder
from phylactery_hooks.service import EventService, log_failure
from phylactery_hooks.sessions import Sessions
from phylactery_hooks.settings import HelperSettings, SettingsError, load
from phylactery_hooks.state import State, client_folder

if TYPE_CHECKING:
    from phylactery_hooks.http import HttpOptions

_RETRY_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 1.0
_HEAD_LINES: Final = 3
_END: Final = b"\nend\n\n"
"""The head of a request that ends a helper, unless it serves HTTP too."""
_LOCK_SECONDS: Final = 60.0
_PAUSE: Final = 0.05
_log = logging.getLogger("phylactery_hooks")


class Helper:
    """Serves the events of one folder over its socket, and over HTTP if there are options for it."""

    def __init__(self, folder: Path, settings: HelperSettings, *, http: HttpOptions | None = None) -> None:
        self._folder, self._settings, self._http = folder, settings, http
        self._used = time.monotonic()
        self._serving = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._over = asyncio.Event()

    async def run(self, on_ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve until nothing comes for a while, or a signal asks it to end; on_ready gets the address of HTTP."""
        settings = self._settings
        named = {"subject": settings.subject, "tenant": settings.tenant} if settings.delegated else {}
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._over.set)
        async with RiskGateClient(
            settings.target,
            token=settings.token(),
            credentials=_credentials(settings),
            timeout=settings.answer_seconds * 0.4,
            retry_seconds=_RETRY_SECONDS,
            **named,
        ) as gate:
            self._own = self._service(gate, self._folder, settings.subject, settings.tenant)
            async with contextlib.AsyncExitStack() as stack:
                if self._http is not None:
                    from phylactery_hooks.http import HookServer  # a helper that starts on demand loads no HTTP

                    server = HookServer(self._http, self._services(gate, self._http), settings.answer_seconds)
                    on_ready(await stack.enter_async_context(server))
                await self._serve_socket()

    async def _serve_socket(self) -> None:
        server = await asyncio.start_unix_server(self._connected, sock=_listening(), limit=MAX_BYTES * 2)
        async with server:
            await self._until_idle()
            os.unlink(HELPER)  # noqa: PTH108 - whoever comes now starts another
            server.close()
            await self._idle.wait()

    def _services(self, gate: RiskGateClient, http: HttpOptions) -> Mapping[str, EventService]:
        """Return the services of those who may connect over HTTP, by the hashes of their tokens."""
        found = {http.token_hash: self._own}
        for one in http.clients:
            folder = client_folder(self._folder, one.tenant, one.subject)
            found[one.token_hash] = self._service(
                gate.acting_for(one.subject, one.tenant), folder, one.subject, one.tenant
            )
        return found

    def _service(self, gate: RiskGateClient, folder: Path, subject: str, tenant: str) -> EventService:
        settings = self._settings
        guard = Guard(gate, subject=subject, tenant=tenant, settle_seconds=settings.answer_seconds / 2)
        sessions = Sessions(
            guard,
            State(folder),
            kept=[str(self._folder), *settings.secret_files()],
            guarded=_own_files(),
            answer_in_chat=settings.answer_in_chat,
        )
        return EventService(sessions, settings.answer_seconds)

    async def _until_idle(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), _LOOK_SECONDS)
            resting = not self._serving and self._http is None
            if resting and time.monotonic() - self._used > self._settings.idle_seconds:
                return

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving += 1
        self._idle.clear()
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the hook is gone
        except Exception as error:  # noqa: BLE001 - asyncio would log it with its text
            log_failure(error)
        finally:
            self._serving -= 1
            if not self._serving:
                self._idle.set()
            self._used = time.monotonic()
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > MAX_BYTES * 2:
            return
        request = await reader.readexactly(size)
        if request == _END:
            if self._http is None:
                self._over.set()
            writer.write(b"stays" if self._http is not None else b"ends")
            return
        *head, payload = request.split(b"\n", _HEAD_LINES)
        host, named, project = (one.decode("utf-8", "surrogateescape") for one in head)
        event, answer = await self._own.answer(host, named, project, payload)
        try:
            if reader.at_eof():
                raise BrokenPipeError
            writer.write(answer.packed())
            await writer.drain()
        except OSError:
            await self._own.undelivered(event)


def _own_files() -> list[str]:
    """Return the folders whose code decides: an agent that could write there would switch the gate off."""
    packages = [str(Path(str(one.__file__)).parent) for one in (hosts, phylactery_client)]
    return packages if sys.prefix == sys.base_prefix else [*packages, sys.prefix]


def _listening() -> socket.socket:
    """Return a socket at its place, which nobody else may reach; what a dead helper left there is replaced."""
    new = f"{HELPER}.new"
    Path(new).unlink(missing_ok=True)
    found = socket.socket(socket.AF_UNIX)
    found.bind(new)
    Path(new).chmod(0o600)
    found.listen(128)
    Path(new).rename(HELPER)
    return found


def _credentials(settings: HelperSettings) -> grpc.ChannelCredentials | None:
    if not settings.ca_file:
        return None
    try:
        return grpc.ssl_channel_credentials(Path(settings.ca_file).expanduser().read_bytes())
    except OSError:
        raise SettingsError(f"certificate file '{settings.ca_file}' cannot be read") from None


@contextlib.contextmanager
def _alone(folder: Path, *, replacing: bool) -> Iterator[bool]:
    """Work in a folder alone; the value is False if a helper has it. One that only waits for events is replaced."""
    check_folder(str(folder))
    os.chdir(folder)
    os.umask(0o077)
    with os.fdopen(os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+") as lock:
        until = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not replacing or time.monotonic() > until or not _ends():
                    yield False
                    return
                time.sleep(_PAUSE)
            else:
                break
        lock.truncate()
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield True


def _ends() -> bool:
    """Ask the helper of the current folder to end; return False if it serves HTTP and stays."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(_LOCK_SECONDS)
        try:
            peer.connect(HELPER)
            peer.sendall(len(_END).to_bytes(4, "big") + _END)
            return peer.recv(16) != b"stays"
        except OSError:
            return True  # it starts, or has just ended


def serve(folder: Path, http: HttpOptions, on_ready: Callable[[str], None]) -> None:
    """Serve a folder's events over its socket and over HTTP until a signal ends it. Raise SettingsError or OSError."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    settings = load(folder)
    with _alone(folder, replacing=True) as alone:
        if not alone:
            raise SettingsError(f"another `riskgate hook serve` serves folder '{folder}'")
        asyncio.run(Helper(folder, settings, http=http).run(on_ready))


def main() -> None:
    """Serve a folder, unless another helper does already."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    with _alone(folder, replacing=False) as alone:
        if not alone:
            return
        try:
            asyncio.run(Helper(folder, load(folder)).run())
        except SettingsError as error:
            _log.error("%s", error)
            sys.exit(2)


if __name__ == "__main__":
    main()
