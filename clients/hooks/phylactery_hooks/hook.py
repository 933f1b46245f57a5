"""The hook process: hands a host's event to the resident helper, and its answer back.

It starts for every event, so it imports little and decides nothing. Whatever goes wrong here ends with exit code 2,
which every host takes for a refusal; an event that cannot refuse anything, such as the end of a turn, is let go.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # signal and socket import enum, re and more: 40 ms
import _socket as socket
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 20 ms
    from typing import Final, NoReturn

SECONDS: Final = 25.0
"""How long an event may take; the time-out in a host's settings is longer."""
MAX_BYTES: Final = 4 * 1024 * 1024
HELPER, LOCK, LOG = "helper.sock", "helper.lock", "helper.log"
PASSIVE: Final = frozenset({"Stop", "SessionEnd", "AfterAgent"})
"""Events that only report an end: refusing one would keep the agent going."""
HOSTS: Final = ("claude-code", "codex", "gemini")
_ENDS: Final = {
    signal.SIGALRM: "no answer in time",
    signal.SIGINT: "the hook was interrupted",
    signal.SIGTERM: "the hook was ended",
    signal.SIGHUP: "the hook was ended",
}
"""Signals that end the hook; without a handler each would end it with a code that hosts take for a yes."""
_PAUSE: Final = 0.01
_START_EVERY: Final = 3.0


def default_folder() -> str:
    """Return the folder of the socket, the settings and the state, unless another is named."""
    return os.environ.get("PHYLACTERY_HOOKS_DIR") or os.path.expanduser("~/.phylactery/hooks")  # noqa: PTH111 - see above


def main() -> None:
    """Serve one event: ``phylactery-hook HOST [EVENT] [--dir FOLDER]``."""
    words = sys.argv[1:]
    folder = default_folder()
    if "--dir" in words:
        at = words.index("--dir")
        folder = words[at + 1] if len(words) > at + 1 else ""
        words = words[:at] + words[at + 2 :]
    run(words[0] if words else "", words[1] if len(words) > 1 else "", folder)


def run(host: str, event: str, folder: str) -> NoReturn:
    """Serve the event on standard input and leave with the answer's exit code."""
    for number, why in _ENDS.items():
        signal.signal(number, lambda *_, why=why: _give_up(event, why))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        if host not in HOSTS:
            _refuse(f"host '{host[:40]}' not found; one of {', '.join(HOSTS)}")
        payload = _read()
        project = os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("GEMINI_PROJECT_DIR") or ""
        head = "\n".join((host, event, project.replace("\n", " "), "")).encode("utf-8", "surrogateescape")
        answer = ask(folder, head + payload, SECONDS)
        code, size = answer[0], int.from_bytes(answer[1:5], "big")
        out, told = answer[5 : 5 + size], answer[5 + size :]
        if code not in {0, 2} or len(out) != size or (code == 0 and not out.endswith(b"}\n")):
            _give_up(event, "the helper's answer is not whole")  # half an answer is no decision to a host
        _leave(code, out, told)
    except Exception as error:  # noqa: BLE001 - any doubt is a refusal
        _give_up(event, str(error) or type(error).__name__)


def ask(folder: str, request: bytes, seconds: float) -> bytes:
    """Return the helper's answer, and start it where none runs. Raise OSError."""
    check_folder(folder)
    os.chdir(folder)  # the path of a socket may have about 100 bytes; a name alone has few
    until, started = time.monotonic() + seconds, 0.0
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise OSError("its helper does not start")
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(left)
        try:
            connection.connect(HELPER)
            connection.sendall(len(request).to_bytes(4, "big") + request)
            answer = _all_of(connection)
            if len(answer) > 4:  # noqa: PLR2004 - an exit code and a length
                return answer
        except (FileNotFoundError, ConnectionRefusedError):
            if not started or time.monotonic() - started > _START_EVERY:
                started = time.monotonic()
                start()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was just about to end
        finally:
            connection.close()
        time.sleep(_PAUSE)


def start() -> None:
    """Start a helper in the current folder; of several, all but one end at once."""
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    isolated = "-I" if sys.flags.isolated else "-P"  # as the hook itself: PYTHONPATH may lead into the workspace
    words = [sys.executable, isolated, "-m", "phylactery_hooks.helper", "."]
    os.posix_spawn(sys.executable, words, os.environ, file_actions=actions, setsid=True)
    os.close(log)


def check_folder(folder: str) -> None:
    """Raise OSError unless the folder is there and belongs to this user alone."""
    try:
        found = os.stat(folder)  # noqa: PTH116 - pathlib is not imported here
    except FileNotFoundError:
        raise OSError(f"folder '{folder}' not found; run `riskgate hook install`") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise OSError(f"folder '{folder}' must belong to you alone (mode 0700)")


def _read() -> bytes:
    """Return standard input. Raise OSError if there is too much of it."""
    found = bytearray()
    while piece := os.read(0, 1 << 16):
        found += piece
        if len(found) > MAX_BYTES:
            raise OSError(f"the event has more than {MAX_BYTES} bytes")
    return bytes(found)


def _all_of(connection: socket.socket) -> bytes:
    found = bytearray()
    while piece := connection.recv(1 << 16):
        found += piece
    return bytes(found)


def _give_up(event: str, why: str) -> NoReturn:
    if event in PASSIVE:
        _leave(0, b"{}\n", b"")
    _refuse(why)


def _refuse(why: str) -> NoReturn:
    _leave(2, b"", f"RiskGate: not allowed, because {why}.\n".encode("utf-8", "replace"))


def _leave(code: int, out: bytes, told: bytes) -> NoReturn:
    """Write and end at once: nothing may come in between."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        for stream, data in ((1, out), (2, told)):
            view = memoryview(data)
            while view:
                view = view[os.write(stream, view) :]
    except OSError:
        os._exit(2)
    os._exit(code)


if __name__ == "__main__":
    main()
