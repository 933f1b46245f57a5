"""Faults against the three running services, while people ask for effects that are counted from outside.

    python -m tests.support.chaos --seconds 600 --seed 7   # as make chaos; ends with 1 where a count is wrong

An effect is a line in a file, each asked for once. No service is asked what happened: the files are.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from phylactery.agent.v1 import chat_pb2
from phylactery_cli.supervisor import SERVICES, Stack, running

from tests.support.stack import ForkedStack, Person, lasting_ports, sandbox

FAULTS = ("kill", "hang", "disk", "net", "clock")
_LONGEST_FAULT_SECONDS = 1.5
_SETTLING_SECONDS = 240.0
_PAUSE_SECONDS = (0.1, 1.0)


class Cable:
    """A way to a service on loopback that can be cut: what goes over it ends, and nobody gets through meanwhile."""

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
        """Cuts it for the block."""
        self._cut.set()
        for one in list(self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        yield
        self._cut.clear()

    def close(self) -> None:
        """Takes no more connections."""
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
    """One effect that was asked for, and what its asker was told in the end."""

    line: str
    request_id: str
    answer: chat_pb2.SendMessageResponse | None = None

    def told(self, state: str, status: str = "") -> bool:
        """Return True where the answer has a call that stands there."""
        calls = self.answer.run.tool_calls if self.answer is not None else ()
        return any(call.state == state and (not status or call.status == status) for call in calls)


@dataclass
class Outcome:
    """What a campaign did and what it counted."""

    faults: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def wrong(self) -> bool:
        """Return True where an effect was lost, doubled, denied though it happened, or never answered."""
        return any(self.counts[name] for name in ("lost", "doubled", "denied but happened", "unanswered"))

    def table(self) -> str:
        """Return the Markdown table."""
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


class Talker(threading.Thread):
    """A person who asks for one effect after the other, and asks again with the same id until there is an answer."""

    def __init__(self, stack: Stack, name: str, stop: threading.Event) -> None:
        super().__init__(name=name)
        self.asked: list[Asked] = []
        self._stack, self._stop_asking, self._limit = stack, stop, 0.0

    def run(self) -> None:
        """Asks until told to stop, and settles what is open then."""
        with Person(self._stack, self.name, thread=f"chaos-{self.name}") as person:
            while not self._stop_asking.is_set():
                number = len(self.asked)
                self.asked.append(Asked(f"{self.name} {number}", f"chaos-{self.name}-{number}"))
                self._settle(person, self.asked[-1])

    def _settle(self, person: Person, asked: Asked) -> None:
        limit = 0.0
        while asked.answer is None:
            with contextlib.suppress(grpc.RpcError):
                text = f'append "{asked.line}" to {self.name}.txt'
                asked.answer = person.say(text, request_id=asked.request_id, timeout=20)
                return
            if self._stop_asking.is_set():
                limit = limit or time.monotonic() + _SETTLING_SECONDS
                if time.monotonic() > limit:
                    return
            time.sleep(0.2)


class Campaign:
    """Faults, one after the other, against a stack that runs."""

    def __init__(self, stack: Stack, cable: Cable, shift: Path, seed: int) -> None:
        self._stack, self._cable, self._shift = stack, cable, shift
        self._random = random.Random(seed)
        self.outcome = Outcome()

    def go_on(self, seconds: float) -> None:
        """Injects faults for a time, each kind in its turn before any comes again."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for name in self._random.sample(FAULTS, len(FAULTS)):
                getattr(self, f"_{name}")(self._random.choice(SERVICES))
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
        """No file of the service may grow: each write fails, as on a full disk."""
        pid = self._stack.processes[service].process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
        self._hold()
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        if self._stack.ended(service):  # what cannot write may end; whoever runs it starts it again
            self._stack.launch(service, port=self._stack.processes[service].port)
            self._stack.wait_healthy(service)

    def _net(self, _service: str) -> None:
        with self._cable.cut():
            self._hold()

    def _clock(self, _service: str) -> None:
        self._shift.write_text(str(self._random.choice((-3_600, -60, 60, 3_600))))
        self._hold()
        self._shift.write_text("0")


def counted(folder: Path, asked: list[Asked]) -> Counter[str]:
    """Count what was asked for, beside what the files hold."""
    lines: Counter[str] = Counter()
    for path in folder.glob("*.txt"):
        lines.update(path.read_text(encoding="utf-8").split("\n"))
    counts: Counter[str] = Counter({"asked for": len(asked)})
    for one in asked:
        times = lines[one.line]
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


def campaign(folder: Path, *, seconds: float, seed: int, people: int = 3) -> Outcome:
    """Run a campaign over a new data folder and return what it counted."""
    shift = folder / "shift"
    folder.mkdir(parents=True, exist_ok=True)
    shift.write_text("0")
    ports = lasting_ports()
    cable = Cable(f"127.0.0.1:{ports['riskgate']}")
    moved = {name: {"CLOCK_SERVICE": name, "CLOCK_SHIFT_FILE": str(shift)} for name in SERVICES}
    moved["agent"]["AGENT_RISKGATE_TARGET"] = cable.target
    modules = dict.fromkeys(SERVICES, "tests.support.shifted")
    stop = threading.Event()
    with running(ForkedStack(folder / "data", ports, extra_env=moved, modules=modules)) as stack:
        talkers = [Talker(stack, f"p{number}", stop) for number in range(people)]
        for talker in talkers:
            talker.start()
        faults = Campaign(stack, cable, shift, seed)
        try:
            faults.go_on(seconds)
        finally:
            stop.set()
            for talker in talkers:
                talker.join()
            cable.close()
        asked = [one for talker in talkers for one in talker.asked]
        faults.outcome.counts = counted(sandbox(stack), asked)
    return faults.outcome


def main() -> None:
    """Run a campaign and print its table; exit with 1 where a count is wrong."""
    parser = argparse.ArgumentParser(description="Faults against running services, effects counted from outside.")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", type=Path, default=None, help="a new folder for everything the services write")
    chosen = parser.parse_args()
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="phylactery-chaos-"))
    print(f"seed {seed}, {chosen.seconds:g} s, folder {folder}", file=sys.stderr)  # noqa: T201 - a command prints
    outcome = campaign(folder, seconds=chosen.seconds, seed=seed)
    print(outcome.table())  # noqa: T201 - the same
    sys.exit(outcome.wrong)


if __name__ == "__main__":
    main()
