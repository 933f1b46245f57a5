"""`riskgate audit stream`: every entry to a SIEM, at least once, from where the last run stood.

The cursor is written after a delivery, never before: a run that is killed in between delivers again, and `log` with
`index` (in OCSF `metadata.uid`) identify the entry. Records contain no argument values.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer
from phylactery_chassis.util.durable_files import write_whole

from phylactery_riskgate.cli.audit.ocsf import ocsf_event
from phylactery_riskgate.cli.audit.remote import (
    Kind,
    Log,
    Positions,
    Tool,
    entry_facts,
    entry_filter,
    follow,
    positions_now,
)
from phylactery_riskgate.cli.common import UNUSABLE, unusable
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Target, TokenFile, connect

MAX_BATCH = 500
_HELD = 2_000
"""Number of entries buffered for a slow endpoint; later ones stay at the server."""
_TIMEOUT_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0


class Format(StrEnum):
    """How an entry is written."""

    JSONL = "jsonl"
    OCSF = "ocsf"


class Delivered(NamedTuple):
    """An entry, and how far the logs are with it."""

    line: bytes
    positions: Positions


class RefusedError(Exception):
    """An endpoint that will not take this entry, however often it is sent."""


Deliver = Callable[[Sequence[bytes]], None]


def stream(
    *,
    to: Annotated[str, typer.Option("--to", help="a file, - for standard output, or an http(s) URL")],
    cursor: Annotated[Path, typer.Option("--cursor", help="file that says how far it is; made at the first run")],
    form: Annotated[Format, typer.Option("--format", help="jsonl: the records as they are; ocsf: OCSF 1.3 events")] = (
        Format.JSONL
    ),
    header_file: Annotated[
        Path | None, typer.Option("--header-file", help="file of headers for the URL, such as Authorization: …")
    ] = None,
    from_now: Annotated[bool, typer.Option("--from-now", help="at the first run: start with new entries")] = False,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    log: Log = "",
    kind: Kind = "",
    tool: Tool = "",
    count: Annotated[int, typer.Option("--count", min=0, help="stop after this many entries; 0 means never")] = 0,
) -> None:
    """Deliver your tenant's entries to a SIEM, at least once and in the order of each log, until you stop it."""
    deliver = _destination(to, header_file)
    wanted = entry_filter(log=log, kind=kind, tool=tool)
    write = ocsf_event if form is Format.OCSF else entry_facts
    with _Cursor.opened(cursor) as kept, connect(target, token_file) as remote:
        if from_now and not kept.positions:
            kept.save(positions_now(remote))

        def entries() -> Iterator[Delivered]:
            at = dict(kept.positions)
            for entry in follow(remote, wanted, values=False, from_beginning=True, at=at):
                line = json.dumps(write(entry), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
                yield Delivered(line.encode() + b"\n", dict(at))

        left = count
        for batch in _batches(entries()):
            taken = batch[:left] if count else batch
            _until_taken(deliver, [one.line for one in taken])
            kept.save(taken[-1].positions)
            left -= len(taken)
            if count and not left:
                return


def _batches(entries: Iterator[Delivered]) -> Iterator[list[Delivered]]:
    """Read entries in a thread of their own, and yield all that are there, at once; nothing waits to be more."""
    waiting: queue.Queue[Delivered | Exception] = queue.Queue(_HELD)

    def read() -> None:
        try:
            for entry in entries:
                waiting.put(entry)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command says it and ends
            waiting.put(error)

    threading.Thread(target=read, name="audit-stream", daemon=True).start()
    while True:
        found = [waiting.get()]
        with suppress(queue.Empty):
            while len(found) < MAX_BATCH:
                found.append(waiting.get_nowait())
        failed = next((one for one in found if isinstance(one, Exception)), None)
        batch = [one for one in found if isinstance(one, Delivered)]
        if batch:
            yield batch
        if failed is not None:
            raise failed


def _until_taken(deliver: Deliver, lines: Sequence[bytes]) -> None:
    """Deliver lines, retrying if the destination is unavailable or full; failures are reported on standard error."""
    pause = _FIRST_PAUSE
    while True:
        try:
            deliver(lines)
        except BrokenPipeError:
            raise typer.Exit(UNUSABLE) from None
        except RefusedError as error:
            raise unusable(f"the endpoint refuses these entries: {error}; nothing is lost, the cursor stays") from None
        except OSError as error:
            typer.echo(f"riskgate: not delivered, again in {pause:g} s: {_told(error)}", err=True)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        else:
            return


def _told(error: OSError) -> str:
    """Return what went wrong, without the URL or anything the other side said."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the endpoint returned {error.code}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return reason.strerror or type(reason).__name__ if isinstance(reason, OSError) else type(reason).__name__


def _destination(to: str, header_file: Path | None) -> Deliver:
    """Return the destination: a file, standard output or an endpoint."""
    if to.startswith(("http://", "https://")):
        return _Endpoint(to, _headers(header_file)).deliver
    if header_file is not None:
        raise unusable("--header-file is for a URL")
    if to == "-":
        return _to_output
    path = Path(to)
    if not path.parent.is_dir() or path.is_dir():
        raise unusable(f"{to}: no file can be written there; name a file in a folder that exists")
    return _LinesFile(path).deliver


def _to_output(lines: Sequence[bytes]) -> None:
    sys.stdout.buffer.write(b"".join(lines))
    sys.stdout.buffer.flush()


@dataclass
class _LinesFile:
    """Appends lines to a file and makes them durable; a file that was moved away is begun again."""

    path: Path

    def deliver(self, lines: Sequence[bytes]) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            whole = _whole_lines(descriptor)
            try:
                with os.fdopen(os.dup(descriptor), "ab", buffering=0) as file:
                    _write_all(file, b"".join(lines))
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, whole)
                raise
        finally:
            os.close(descriptor)


def _whole_lines(descriptor: int) -> int:
    """Return how long a file is; half a line that a killed run left at its end is cut off: its entry comes again."""
    size = os.fstat(descriptor).st_size
    end = size
    while end:
        start = max(0, end - 65_536)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end < size:
        os.ftruncate(descriptor, end)
    return end


def _write_all(file: Any, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would not arrive unchanged, so the new URL has to be configured."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass
class _Endpoint:
    """Posts lines as newline-delimited JSON; 2xx says that they were taken."""

    url: str
    headers: dict[str, str] = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if not parts.hostname or parts.username is not None or parts.password is not None:
            raise unusable("--to needs a URL with a host and without credentials; pass them with --header-file")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise unusable("--to must use https for remote hosts: entries contain user data")

    def deliver(self, lines: Sequence[bytes]) -> None:
        headers = {"Content-Type": "application/x-ndjson", **self.headers}
        request = urllib.request.Request(self.url, b"".join(lines), headers, method="POST")  # noqa: S310 - checked above
        try:
            with urllib.request.build_opener(_NoRedirects).open(request, timeout=_TIMEOUT_SECONDS) as answer:
                answer.read(65_536)
        except urllib.error.HTTPError as error:
            error.close()
            retried = error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in _COMES_AGAIN
            if not retried:
                raise RefusedError(f"it returned {error.code}") from None
            raise


_COMES_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _headers(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise unusable(f"{file}: the headers cannot be read") from None
    found = {}
    for number, line in enumerate(lines, 1):
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.isascii() or not name.replace("-", "").isalnum() or not value.strip().isprintable():
            raise unusable(f"{file}:{number}: a header is written Name: value")
        found[name] = value.strip()
    return found


@dataclass
class _Cursor:
    """How far each log was delivered, in a file that is replaced as a whole."""

    path: Path
    positions: Positions

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[_Cursor]:
        """Open a cursor for one run alone. Raise typer.Exit where another run has it or it cannot be read."""
        try:
            lock = path.with_name(f"{path.name}.lock").open("ab")
        except OSError as error:
            raise unusable(f"{path}: the cursor cannot be written there: {error.strerror}") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise unusable(f"{path}: another `riskgate audit stream` uses this cursor") from None
            yield cls(path, _read_positions(path))

    def save(self, positions: Positions) -> None:
        """Make durable how far it is; where that fails, the same entries are delivered again by the next run."""
        try:
            write_whole(
                self.path, json.dumps({"version": 1, "positions": positions}, sort_keys=True).encode(), mode=0o666
            )
        except OSError as error:
            typer.echo(f"riskgate: {self.path}: the cursor could not be written: {error.strerror}", err=True)
        self.positions = positions


def _read_positions(path: Path) -> Positions:
    try:
        kept = json.loads(path.read_text("utf-8"))["positions"]
        found = {str(name): int(index) for name, index in kept.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise unusable(f"{path}: not a valid cursor; remove it to deliver everything again") from None
    if any(index < 0 for index in found.values()):
        raise unusable(f"{path}: not a valid cursor; remove it to deliver everything again")
    return found
