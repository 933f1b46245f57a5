"""Several worker processes of one service on one port: started, monitored, restarted and stopped together.

The kernel distributes connections over the workers (SO_REUSEPORT). Each worker has its own instance name, and its files
carry that name. A worker that dies is restarted; one that dies repeatedly ends all of them, and so does a worker whose
first start fails. A worker that served and cannot start again, because another process holds its files, is retried
while the others keep serving; if none serves, all are stopped. The workers stop when this process ends, however it
ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.listeners import reserve
from phylactery_chassis.settings import ServiceSettings
from phylactery_chassis.telemetry import logs
from phylactery_chassis.util.durable_files import write_whole


def write_ready(path: Path, content: dict[str, Any]) -> None:
    """Write the file atomically, so that a reader never sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(content).encode(), mode=0o666)


_START_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_MAX_DEATHS, _DEATHS_WITHIN_SECONDS = 5, 60.0
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 15.0
_CANNOT_START = 2
_SET_PARENT_DEATH_SIGNAL = 1

_log = logs.get_logger("workers")


@dataclass(slots=True)
class _Worker:
    name: str
    environment: Mapping[str, str]
    ready: Path
    process: subprocess.Popen[bytes]
    deaths: list[float] = field(default_factory=list)
    deadline: float = 0.0
    """When it must be serving, on the monotonic clock."""
    pause: float = 0.0
    """The pause before its last retry, in seconds; 0 once it serves."""
    again_at: float = 0.0
    """When it is retried, on the monotonic clock; 0 if no retry is scheduled."""


class Workers:
    """The workers of one service."""

    def __init__(self, settings: ServiceSettings, count: int, command: list[str], options: Mapping[str, Any]) -> None:
        """``count`` is the number of workers, ``command`` what each runs; ``options`` override the environment."""
        self._settings, self._count, self._command = settings, count, command
        self._prefix = str(settings.model_config.get("env_prefix", ""))
        self._options = {f"{self._prefix}{name}".upper(): str(value) for name, value in options.items()}
        self._stopping = False
        self._workers: list[_Worker] = []

    def run(self) -> int:
        """Serve until SIGINT or SIGTERM and return the exit code. Raise StartError if a worker cannot start."""
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, self._stop)
        signal.signal(signal.SIGHUP, self._hand_on)
        variables = f"{self._prefix}PORT or {self._prefix}HOST"
        with (
            reserve(self._settings.host, self._settings.port, variables) as reserved,
            tempfile.TemporaryDirectory(prefix="phylactery-workers-") as folder,
        ):
            port = reserved.getsockname()[1]
            try:
                for number in range(self._count):  # one after the other: the first creates keys and tables
                    if self._stopping:
                        break
                    self._workers.append(self._started(number, port, Path(folder) / f"{number}.json"))
                    self._wait_until_ready(self._workers[-1])
                return self._watch(port)
            finally:
                self._end()

    def _watch(self, port: int) -> int:
        if not self._stopping:
            pids = [worker.process.pid for worker in self._workers]
            if self._settings.ready_file is not None:
                ready = {"service": self._settings.service, "pid": os.getpid(), "port": port, "workers": pids}
                write_ready(self._settings.ready_file, ready)
            _log.info("serving", host=self._settings.host, port=port, workers=pids)
        while not self._stopping:
            for worker in self._workers:
                if not self._stopping:
                    self._look_after(worker)
            time.sleep(_LOOK_SECONDS)
        return 0

    def _look_after(self, worker: _Worker) -> None:
        now = time.monotonic()
        if worker.process.poll() is None:
            if worker.ready.exists():
                worker.pause = 0.0
            elif now > worker.deadline:
                _log.error("a worker does not serve in time and is ended", worker=worker.name)
                worker.process.kill()
                worker.process.wait()
        elif worker.again_at > now:
            return
        elif worker.again_at:
            self._start_again(worker)
        elif worker.process.returncode == _CANNOT_START and not worker.ready.exists():
            self._wait_to_start(worker, now)
        else:
            self._count_death(worker, now)
            self._start_again(worker)

    def _count_death(self, worker: _Worker, now: float) -> None:
        worker.deaths = [at for at in worker.deaths if now - at < _DEATHS_WITHIN_SECONDS] + [now]
        _log.error("a worker has ended", worker=worker.name, exit_code=worker.process.returncode)
        if len(worker.deaths) >= _MAX_DEATHS:
            raise StartError(
                f"worker {worker.name} ended {_MAX_DEATHS} times within {_DEATHS_WITHIN_SECONDS:.0f} seconds, so all "
                "were stopped; its log lines above say why"
            )

    def _wait_to_start(self, worker: _Worker, now: float) -> None:
        """Schedule a retry, with growing pauses, of a worker that cannot start again while others serve."""
        if not any(other.process.poll() is None for other in self._workers):
            raise StartError(
                f"worker {worker.name} cannot restart, and no other worker is serving: see its output above"
            )
        worker.pause = min(2 * worker.pause, _LONGEST_PAUSE_SECONDS) or _FIRST_PAUSE_SECONDS
        worker.again_at = now + worker.pause
        _log.error("a worker cannot restart; the others continue", worker=worker.name, again_in_seconds=worker.pause)

    def _start_again(self, worker: _Worker) -> None:
        worker.ready.unlink(missing_ok=True)
        worker.again_at, worker.deadline = 0.0, time.monotonic() + _START_SECONDS
        worker.process = self._spawn({**worker.environment, **self._settings.started_again})

    def _started(self, number: int, port: int, ready: Path) -> _Worker:
        instance = "-".join(part for part in (str(getattr(self._settings, "instance", "")), str(number)) if part)
        environment = os.environ | self._options
        for name, value in (("PORT", port), ("READY_FILE", ready), ("INSTANCE", instance), ("SHARE_PORT", "true")):
            environment[f"{self._prefix}{name}"] = str(value)
        for name in ("admin_port", "metrics_port"):  # whoever looks at one worker must reach that one
            if first := getattr(self._settings, name):
                environment[f"{self._prefix}{name}".upper()] = str(first + number)
        return _Worker(instance, environment, ready, self._spawn(environment))

    def _spawn(self, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - runs this same program
            self._command,
            env=dict(environment),
            start_new_session=True,  # so that a terminal's signals reach the workers only through this process
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - there is no other thread
        )

    def _wait_until_ready(self, worker: _Worker) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not worker.ready.exists() and not self._stopping:
            code = worker.process.poll()
            if code == _CANNOT_START:
                raise StartError(f"worker {worker.name} cannot start: see its output above")
            if code is not None:
                return  # it died: _watch counts that and restarts it
            if time.monotonic() > deadline:
                raise StartError(f"worker {worker.name} did not serve within {_START_SECONDS:.0f} seconds")
            time.sleep(_LOOK_SECONDS)

    def _hand_on(self, number: int, _frame: FrameType | None) -> None:
        """Forward a signal to the serving workers, which handle it."""
        for worker in self._workers:
            if worker.ready.exists():
                worker.process.send_signal(number)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _end(self) -> None:
        """Let every worker drain, then kill those still running."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.terminate()
        deadline = time.monotonic() + self._settings.drain_seconds + 10
        for worker in self._workers:
            try:
                worker.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()


def _die_with_parent() -> None:
    """Ask Linux to end this process together with its parent; on other systems it ends when it is signalled."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
