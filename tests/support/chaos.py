"""Fault injection into the three running services while people request effects that are counted from outside.

    python -m tests.support.chaos --seconds 600 --seed 7   # as make chaos; exits with 1 if a count is wrong

An effect is a line in a file, or an e-mail, each requested once. The files and the mail server are the evidence, not
the services. Over PostgreSQL (--database) a second agent may run alongside the first (--replicas 2).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import grpc
from aiosmtpd.controller import Controller
from phylactery.agent.v1 import chat_pb2, event_pb2, run_pb2
from phylactery_chassis.db.database import Database
from phylactery_cli.supervisor import SERVICES, Stack, running

from tests.support.processes.agents import LEASE_SECONDS
from tests.support.processes.ports import lasting_port
from tests.support.processes.stack import ForkedStack, Person, lasting_ports, sandbox, yes
from tests.support.servers import postgres

FAULTS = ("kill", "hang", "disk", "net", "clock")
DATABASES = ("sqlite", "postgresql")
Effect = Literal["file", "mail"]
REPLICA = "replica"
"""The second agent, over the database and folder of the first."""
_AT_WORK = (event_pb2.RUN_STATUS_QUEUED, event_pb2.RUN_STATUS_RUNNING, event_pb2.RUN_STATUS_SUSPENDED)
_LONGEST_FAULT_SECONDS = 1.5
_SETTLING_SECONDS = 240.0
_PAUSE_SECONDS = (0.1, 1.0)


class Cable:
    """A connection to a service on loopback that can be cut: open connections end, and new ones fail meanwhile."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._to = host, int(port)
        self._cut = threading.Event()
        self._open: set[socket.socket] = set()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.target = f"127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def cut(self) -> Iterator[None]:
        """Cut the connection during the block."""
        self._cut.set()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        yield
        self._cut.clear()

    def close(self) -> None:
        """Accept no more connections."""
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                if self._cut.is_set():
                    raise ConnectionRefusedError
                far = socket.create_connection(self._to, timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.discard(source)


@dataclass
class Asked:
    """A requested effect, and the final response to its requester."""

    line: str
    request_id: str
    answer: chat_pb2.SendMessageResponse | None = None
    run: run_pb2.Run | None = None
    """The final state of the run, if it continued after the response."""

    def told(self, state: str, status: str = "") -> bool:
        """Return True if the response has a call in that state."""
        run = self.run or (self.answer.run if self.answer is not None else None)
        calls = run.tool_calls if run is not None else ()
        return any(call.state == state and (not status or call.status == status) for call in calls)


@dataclass
class Outcome:
    """What a campaign did and counted."""

    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> bool:
        """Return True if an effect was lost, duplicated, denied though it happened, or never answered."""
        return any(self.counts[name] for name in ("lost", "doubled", "denied but happened", "unanswered"))

    def table(self) -> str:
        """Return a Markdown table."""
        rows = [(f"faults: {name}", self.faults[name]) for name in FAULTS]
        names = (
            "asked for",
            "done once",
            "in doubt",
            "not done",
            "lost",
            "doubled",
            "denied but happened",
            "unanswered",
        )
        rows += [(name, self.counts[name]) for name in names]
        return "\n".join(["| what | how many |", "|---|---|", *(f"| {name} | {count} |" for name, count in rows)])


class Mailbox:
    """A mail server on loopback that keeps the text of every message."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.port = lasting_port()
        self._server = Controller(self, hostname="127.0.0.1", port=self.port, ready_timeout=30)
        self._server.start()

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        """Accept a message."""
        self.words[envelope.content.decode().replace("\r\n", "\n").partition("\n\n")[2].strip()] += 1
        return "250 taken"

    @property
    def settings(self) -> dict[str, str]:
        """Return the agent settings for sending through it."""
        told = {"HOST": "127.0.0.1", "PORT": str(self.port), "TLS": "none", "FROM": "agent@example.org"}
        return {f"AGENT_SMTP_{name}": value for name, value in told.items()}

    def close(self) -> None:
        """Accept no more messages."""
        self._server.stop()


class Caller(Person):
    """A person whose every call goes to a random agent."""

    def channel(self, service: str) -> grpc.Channel:
        """Open a channel to a service; "agent" is a random agent."""
        agents = [name for name in self.stack.processes if name in ("agent", REPLICA)]
        return super().channel(random.choice(agents) if service == "agent" else service)


class Talker(threading.Thread):
    """A person who requests one effect after another, and retries with the same id until there is a response."""

    def __init__(self, stack: Stack, name: str, stop: threading.Event, effect: Effect) -> None:
        super().__init__(name=name)
        self.asked: list[Asked] = []
        self._stack, self._stop_asking, self._effect = stack, stop, effect
        self._limit: float | None = None

    def run(self) -> None:
        """Request effects until told to stop, then settle what is open."""
        while not self._stop_asking.is_set():
            number = len(self.asked)
            self.asked.append(Asked(f"{self.name} {number}", f"chaos-{self.name}-{number}"))
            # channels are opened per call and closed here
            with Caller(self._stack, self.name, thread=f"chaos-{self.name}") as person:
                self._settle(person, self.asked[-1])

    def _settle(self, person: Person, asked: Asked) -> None:
        text = f'append "{asked.line}" to {self.name}.txt'
        if self._effect == "mail":
            text = f"send an email to bob@example.org saying {asked.line}"
        asked.answer = self._answer(person, text, asked.request_id)
        number = 0
        while asked.answer is not None and asked.answer.HasField("pending_approval") and self._patient():
            number += 1  # a new number if RiskGate did not receive the request: then it is requested again
            asked.answer = self._answer(person, yes(asked.answer), f"{asked.request_id}-yes-{number}")
        if asked.answer is not None and asked.answer.run.status in _AT_WORK:  # it continues by itself
            asked.run = self._ended(person, asked.answer.run.id)
            asked.answer = asked.answer if asked.run is not None else None

    def _answer(self, person: Person, text: str, request_id: str) -> chat_pb2.SendMessageResponse | None:
        while self._patient():
            with contextlib.suppress(grpc.RpcError):
                return person.say(text, request_id=request_id, timeout=20)
            time.sleep(0.2)
        return None

    def _ended(self, person: Person, run_id: str) -> run_pb2.Run | None:
        run = run_pb2.Run()
        while self._patient():
            with contextlib.suppress(grpc.RpcError):
                run = person.run(run_id)
                if run.status not in _AT_WORK:
                    return run
            time.sleep(0.2)
        print(f"{run_id} waits: {run.status} {run.reason}", file=sys.stderr)  # noqa: T201 - shows why it counts as unanswered
        return None

    def _patient(self) -> bool:
        """Return False once the faults ended long ago."""
        if self._limit is None and self._stop_asking.is_set():
            self._limit = time.monotonic() + _SETTLING_SECONDS
        return self._limit is None or time.monotonic() < self._limit


class Campaign:
    """A sequence of faults against a running stack."""

    def __init__(self, stack: Stack, cable: Cable, shift: Path, seed: int, faults: Sequence[str] = FAULTS) -> None:
        self._stack, self._cable, self._shift, self._faults = stack, cable, shift, tuple(faults)
        self._random = random.Random(seed)
        self.outcome = Outcome()

    def go_on(self, seconds: float) -> None:
        """Inject faults for a time, each kind once before any repeats."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name in self._random.sample(self._faults, len(self._faults)):
                getattr(self, f"_{name}")(self._random.choice(list(self._stack.processes)))
                self.outcome.faults[name] += 1
                time.sleep(self._random.uniform(*_PAUSE_SECONDS))

    def _hold(self) -> None:
        time.sleep(self._random.uniform(0.2, _LONGEST_FAULT_SECONDS))

    def _kill(self, service: str) -> None:
        self._stack.kill(service)
        self._hold()
        self._stack.launch(service, port=self._stack.processes[service].port)
        self._stack.wait_healthy(service)

    def _hang(self, service: str) -> None:
        process = self._stack.processes[service].process
        process.send_signal(signal.SIGSTOP)
        self._hold()
        process.send_signal(signal.SIGCONT)

    def _disk(self, service: str) -> None:
        """Let no file of the service grow: each write fails, as on a full disk."""
        pid = self._stack.processes[service].process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
        self._hold()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        if self._stack.ended(service):  # a service that cannot write may exit; its operator restarts it
            self._stack.launch(service, port=self._stack.processes[service].port)
            self._stack.wait_healthy(service)

    def _net(self, _service: str) -> None:
        with self._cable.cut():
            self._hold()

    def _clock(self, _service: str) -> None:
        self._shift.write_text(str(self._random.choice((-3_600, -60, 60, 3_600))))
        self._hold()
        self._shift.write_text("0")


def lines_of(folder: Path) -> Counter[str]:
    """Count every line in the files of a folder."""
    lines: Counter[str] = Counter()
    for path in folder.glob("*.txt"):
        lines.update(path.read_text(encoding="utf-8").split("\n"))
    return lines


def counted(happened: Counter[str], asked: Sequence[Asked]) -> Counter[str]:
    """Count the requested effects as they appear in the files."""
    counts: Counter[str] = Counter({"asked for": len(asked)})
    for one in asked:
        times = happened[one.line]
        if one.answer is None:
            counts["unanswered"] += 1
        elif times > 1:
            counts["doubled"] += 1
        elif one.told("in_doubt"):
            counts["in doubt"] += 1
        elif one.told("finished", "success"):
            counts["done once" if times else "lost"] += 1
        else:
            counts["denied but happened" if times else "not done"] += 1
    return counts


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a campaign."""

    seconds: float
    seed: int
    people: int = 3
    database: str = "sqlite"
    replicas: int = 1
    effect: Effect = "file"
    faults: Sequence[str] = FAULTS

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid combination."""
        if self.replicas > 1 and self.database == "sqlite":
            raise ValueError("two agents need PostgreSQL")


def campaign(folder: Path, plan: Plan) -> Outcome:
    """Run a campaign over a new data folder and return its outcome."""
    shift = folder / "shift"
    folder.mkdir(parents=True, exist_ok=True)
    shift.write_text("0")
    ports = lasting_ports()
    stop = threading.Event()
    with ExitStack() as held:
        cable, mailbox = Cable(f"127.0.0.1:{ports['riskgate']}"), Mailbox()
        held.callback(cable.close)
        held.callback(mailbox.close)
        extra = _environment(held, plan, folder, ports, {"AGENT_RISKGATE_TARGET": cable.target, **mailbox.settings})
        modules = dict.fromkeys(extra, "tests.support.processes.shifted")
        stack = held.enter_context(running(ForkedStack(folder / "data", ports, extra_env=extra, modules=modules)))
        if plan.replicas > 1:
            stack.launch(REPLICA)
            held.callback(stack.kill, REPLICA)
            stack.wait_healthy(REPLICA)
        talkers = [Talker(stack, f"p{number}", stop, plan.effect) for number in range(plan.people)]
        for talker in talkers:
            talker.start()
        faults = Campaign(stack, cable, shift, plan.seed, plan.faults)
        try:
            faults.go_on(plan.seconds)
        finally:
            stop.set()
            for talker in talkers:
                talker.join()
        asked = [one for talker in talkers for one in talker.asked]
        happened = mailbox.words if plan.effect == "mail" else lines_of(sandbox(stack))
        faults.outcome.counts = counted(happened, asked)
    return faults.outcome


def _environment(
    held: ExitStack, plan: Plan, folder: Path, ports: dict[str, int], agent: dict[str, str]
) -> dict[str, dict[str, str]]:
    """Return each process's environment by name; a second agent has that of the first."""
    extra = {name: {"CLOCK_SERVICE": name, "CLOCK_SHIFT_FILE": str(folder / "shift")} for name in SERVICES}
    extra["agent"] |= agent
    if plan.database == "postgresql":
        cluster = held.enter_context(postgres.cluster())
        for name in SERVICES:
            url = postgres.create_database(cluster, name)
            database = Database(url)
            database.migrate(f"phylactery_{name}")
            database.close()
            extra[name][f"{name.upper()}_DATABASE_URL"] = url
        extra["agent"] |= {"AGENT_LEASE_SECONDS": str(LEASE_SECONDS), "AGENT_RETRY_SECONDS": "0.1"}
    if plan.replicas > 1:
        ports[REPLICA] = lasting_port()
        extra[REPLICA] = {
            **extra["agent"],
            "AGENT_DATA_DIR": str(folder / "data" / "agent"),
            "AGENT_PORT": str(ports[REPLICA]),
            "AGENT_READY_FILE": str(folder / "data" / REPLICA / "ready.json"),
            "AGENT_MEMORY_TARGET": f"127.0.0.1:{ports['memory']}",
        }
    return extra


def main() -> None:
    """Run a campaign and print its table; exit with 1 if a count is wrong."""
    parser = argparse.ArgumentParser(description="Faults against running services, effects counted from outside.")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument("--replicas", type=int, choices=(1, 2), default=1, help="agents; two need PostgreSQL")
    parser.add_argument("--effect", choices=get_args(Effect), default="file")
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=FAULTS)
    parser.add_argument("--keep", type=Path, default=None, help="a new folder for everything the services write")
    chosen = parser.parse_args()
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="phylactery-chaos-"))
    try:
        plan = Plan(
            chosen.seconds,
            seed,
            database=chosen.database,
            replicas=chosen.replicas,
            effect=chosen.effect,
            faults=chosen.faults,
        )
    except ValueError as error:
        parser.error(str(error))
    print(f"seed {seed}, {chosen.seconds:g} s, folder {folder}", file=sys.stderr)  # noqa: T201 - a command prints
    outcome = campaign(folder, plan)
    print(outcome.table())  # noqa: T201 - the same
    sys.exit(outcome.wrong)


if __name__ == "__main__":
    main()
