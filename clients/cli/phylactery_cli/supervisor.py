"""Starts the three services as processes on loopback, waits until each is healthy, and stops all of them cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import grpc
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc
from phylactery_agent.tools.named_folders import person_folder
from phylactery_chassis.rpc.healthcheck import serving
from phylactery_chassis.rpc.proxies import proxy_options
from phylactery_riskgate.domain.bundle.files import SETTINGS_FILE, single_user_bundle_folder
from phylactery_understanding.documents import read_yaml

SERVICES = ("riskgate", "memory", "agent")
"""In the order they start: the agent asks the other two."""

DEFAULT_PORTS: Mapping[str, int] = {"agent": 50051, "riskgate": 50052, "memory": 50053}

RESTARTS, RESTARTS_WITHIN_SECONDS = 5, 300.0
"""A service that ends by itself is started again so often in this time; once more, and it is given up."""

_FIRST_PAUSE_SECONDS, _WATCH_SECONDS = 0.5, 0.5
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.05
_LAST_LOG_LINES = 3
_READY = "ready.json"


class StackError(RuntimeError):
    """A service did not start or died; the message says which, why, and where its log lies."""


class InUseError(StackError):
    """The three services run over this data folder already; target is where one of them answers."""

    def __init__(self, data_dir: Path, target: str) -> None:
        super().__init__(f"{data_dir} is in use: its services run already, at {target}")
        self.target = target


@dataclass(slots=True)
class ServiceProcess:
    """One service's process."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int = 0
    """Where in the log this start begins; what is before it was said by an earlier one."""
    port: int = 0

    @property
    def target(self) -> str:
        """Return where clients reach it."""
        return f"127.0.0.1:{self.port}"


@dataclass(slots=True)
class Stack:
    """The three services over one data folder."""

    data_dir: Path
    ports: Mapping[str, int]
    extra_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Environment for one service, by name."""
    modules: Mapping[str, str] = field(default_factory=dict)
    """Another module to start for a service; tests start one that dies where they say."""
    processes: dict[str, ServiceProcess] = field(default_factory=dict)
    _launching: bool = field(default=False, init=False)
    _interrupted: bool = field(default=False, init=False)

    @property
    def _one_person(self) -> bool:
        """Return True if neither another bundle nor identities of several people are configured."""
        chosen = {**os.environ, **self.extra_env.get("riskgate", {})}
        return "RISKGATE_BUNDLE" not in chosen and chosen.get("RISKGATE_IDENTITY_MODE", "none") == "none"

    def single_user(self) -> bool:
        """Return True where the bundle that decides asks the requester instead of a peer.

        RiskGate is asked: the data folder may hold a newer bundle of the person's own, which goes on deciding.
        """
        if not self._one_person:
            return False
        with grpc.insecure_channel(self.target("riskgate"), options=proxy_options(self.target("riskgate"))) as channel:
            shown = policy_pb2_grpc.PolicyServiceStub(channel).GetBundle(
                policy_pb2.GetBundleRequest(with_files=True), timeout=_START_SECONDS
            )
        settings = next(file.content for file in shown.files if file.name == SETTINGS_FILE)
        return bool(read_yaml(settings.decode()).get("single_user"))

    @property
    def sandbox(self) -> Path:
        """Return the folder of the files the agent may touch for user 'local', who everybody on loopback is."""
        return self.sandbox_of("local")

    @property
    def former_sandbox(self) -> Path:
        """Return the folder that all users of tenant 'local' shared until 0.2: what is left there is nobody's."""
        return self.data_dir / "agent" / "sandbox" / "local"

    def sandbox_of(self, user_id: str) -> Path:
        """Return the folder of a user of tenant 'local'."""
        return person_folder(self.data_dir / "agent" / "sandbox", "local", user_id)

    def start(self) -> None:
        """Start all three and wait for their health. Raise StackError, and then leaves none behind."""
        self._refuse_second()
        try:
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name in ("riskgate", "memory"):
                self.launch(name)
            for name in ("riskgate", "memory"):
                self.wait_healthy(name)
            self.launch("agent")
            self.wait_healthy("agent")
        except OSError as error:
            self.stop()
            raise StackError(
                f"{self.data_dir} cannot be the data folder ({error.filename}: {error.strerror}); name another"
            ) from None
        except BaseException:
            self.stop()
            raise

    def _refuse_second(self) -> None:
        """Raise InUseError where services run over this folder: a launch would write into their log."""
        for name in SERVICES:
            try:
                ready = json.loads((self.data_dir / name / _READY).read_text())
                os.kill(int(ready["pid"]), 0)
                target = f"127.0.0.1:{int(ready['port'])}"
            except (
                OSError,
                ValueError,
                KeyError,
                TypeError,
            ):  # nothing is running, or a power cut left a truncated file
                continue
            if serving(target, timeout=1):  # a process of another program may have the number by now
                raise InUseError(self.data_dir, target)

    def launch(self, name: str, *, port: int = 0) -> ServiceProcess:
        """Start one service without waiting for it; port is the one its clients use, 0 if it has none yet."""
        folder = self.data_dir / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ready, log = folder / _READY, self.data_dir / "logs" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        ready.unlink(missing_ok=True)
        prefix = name.upper()
        env = {
            **os.environ,
            f"{prefix}_DATA_DIR": str(folder),
            f"{prefix}_PORT": os.environ.get(f"{prefix}_PORT", str(self.ports[name])),
            f"{prefix}_READY_FILE": str(ready),
        }
        if name == "riskgate" and self._one_person:
            env["RISKGATE_BUNDLE"] = str(single_user_bundle_folder())
            env.setdefault(
                "RISKGATE_BUNDLE_OR_ACTIVE", "true"
            )  # the bundle was not named explicitly: keep the active one
        if name == "agent":
            env["AGENT_RISKGATE_TARGET"] = self.target("riskgate")
            env["AGENT_MEMORY_TARGET"] = self.target("memory")
        env.update(self.extra_env.get(name, {}))
        if port:
            env[f"{prefix}_PORT"] = str(port)
        self._launching = True
        try:
            with log.open("ab") as out:
                log_start = out.tell()
                process = self._begin(self.modules.get(name, f"phylactery_{name}"), env, out)
            self.processes[name] = ServiceProcess(name, process, log, log_start, port)
        finally:
            self._launching = False
        if self._interrupted:
            raise KeyboardInterrupt
        return self.processes[name]

    def interrupt(self, _number: int = 0, _frame: object = None) -> None:
        """Raise KeyboardInterrupt; a process being launched is recorded first, so that it can be stopped."""
        if self._launching:
            self._interrupted = True
        else:
            raise KeyboardInterrupt

    def _begin(self, module: str, env: Mapping[str, str], out: BinaryIO) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own module, our own interpreter
            [sys.executable, "-m", module],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, which then stops the services in order
        )

    def wait_healthy(self, name: str) -> None:
        """Wait until the service says SERVING. Raise StackError with the end of its log when it does not."""
        service = self.processes[name]
        ready = self.data_dir / name / _READY
        limit = time.monotonic() + _START_SECONDS
        while time.monotonic() < limit:
            if service.process.poll() is not None:
                raise StackError(f"{name} did not start:\n{_last_lines(service)}\nIts log: {service.log}")
            if ready.exists():
                service.port = int(json.loads(ready.read_text())["port"])
                if serving(service.target, timeout=1):
                    return
            time.sleep(_POLL_SECONDS)
        raise StackError(f"{name} is not healthy after {_START_SECONDS:.0f} s. Its log: {service.log}")

    def target(self, name: str) -> str:
        """Return where clients reach a started service."""
        return self.processes[name].target

    def kill(self, name: str) -> None:
        """Kill one service with SIGKILL, as a power cut would."""
        process = self.processes[name].process
        process.kill()
        process.wait()

    def ended(self, name: str) -> bool:
        """Return True where a service's process has ended."""
        return self.processes[name].process.poll() is not None

    def ready(self, name: str) -> bool:
        """Return True where a service that was launched says that it serves."""
        return (self.data_dir / name / _READY).exists() and serving(self.processes[name].target, timeout=1)

    def died(self) -> str | None:
        """Return the name of a service that ended by itself, None while all live."""
        return next((s.name for s in self.processes.values() if s.process.poll() is not None), None)

    def stop(self) -> None:
        """Stop all of them: SIGTERM, the agent first, for it asks the others; SIGKILL for one that does not end."""
        for names in (("agent",), ("memory", "riskgate")):
            ending = [s.process for name in names if (s := self.processes.get(name)) and s.process.poll() is None]
            for process in ending:
                process.send_signal(signal.SIGTERM)
            for process in ending:
                try:
                    process.wait(_STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


class Fate(NamedTuple):
    """A service that exited unexpectedly."""

    kind: Literal["died", "back", "given_up"]
    service: str
    log: Path
    seconds: float = 0.0
    """How long it is waited until it is started again."""


class Keeper:
    """Starts a service that ends by itself again, where it was; a few times, with pauses that grow."""

    def __init__(self, stack: Stack, tell: Callable[[Fate], Awaitable[None]]) -> None:
        self._stack, self._tell = stack, tell
        self._deaths: dict[str, list[float]] = {name: [] for name in SERVICES}

    async def run(self) -> None:
        """Keep the services running; end where one of them died too often."""
        while True:
            for name in SERVICES:
                if self._stack.ended(name) and not await self._revive(name):
                    return
            await asyncio.sleep(_WATCH_SECONDS)

    async def _revive(self, name: str) -> bool:
        """Start a service again; return False where that was done too often already."""
        now, log = time.monotonic(), self._stack.processes[name].log
        deaths = self._deaths[name] = [*(at for at in self._deaths[name] if now - at < RESTARTS_WITHIN_SECONDS), now]
        if len(deaths) > RESTARTS:
            await self._tell(Fate("given_up", name, log))
            return False
        pause = _FIRST_PAUSE_SECONDS * 2 ** (len(deaths) - 1)
        await self._tell(Fate("died", name, log, pause))
        await asyncio.sleep(pause)
        self._stack.launch(name, port=self._stack.processes[name].port)  # here, where no stop can come between
        limit = time.monotonic() + _START_SECONDS
        while not self._stack.ended(name):
            if await asyncio.to_thread(self._stack.ready, name):
                await self._tell(Fate("back", name, log))
                break
            if time.monotonic() > limit:
                self._stack.kill(name)
            await asyncio.sleep(_POLL_SECONDS)
        return True


@contextlib.contextmanager
def running(stack: Stack, *, leaving: bool = False) -> Iterator[Stack]:
    """Run the stack for the block; SIGTERM and SIGHUP end the block as Ctrl-C does. Nothing interrupts the stop.

    leaving says that the process ends after it: then nothing interrupts that either, for an interpreter interrupted on
    its way out can hang on gRPC's threads.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # nohup ignores the hang-up, and is right to
            signal.signal(number, stack.interrupt)
    try:
        stack.start()
        signal.signal(signal.SIGINT, before[signal.SIGINT])  # what runs in the block treats Ctrl-C as it likes
        yield stack
    finally:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # a service left behind would keep its port
        stack.stop()
        if not leaving:
            for number, handler in before.items():
                signal.signal(number, handler)


def _last_lines(service: ServiceProcess) -> str:
    lines = service.log.read_bytes()[service.log_start :].decode(errors="replace").strip().splitlines()
    lines = [line for line in lines if line.startswith(f"{service.name}: ")] or lines  # why it ended, if it said so
    return "\n".join(f"  {line}" for line in lines[-_LAST_LOG_LINES:]) or "  (it said nothing)"
