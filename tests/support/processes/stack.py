"""End-to-end helpers: a person talking to the real services, and a stack that crashes at chosen points."""

from __future__ import annotations

import itertools
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, cast

import grpc
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2, run_pb2, run_pb2_grpc
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc, types_pb2
from phylactery_agent.tools.named_folders import person_folder
from phylactery_cli.supervisor import Stack

from tests.support.processes.forks import Forked
from tests.support.processes.ports import lasting_port

FREE_PORTS = {"agent": 0, "riskgate": 0, "memory": 0}
"""Ports for services that are not restarted."""
_LIMIT_SECONDS = 150.0


def lasting_ports() -> dict[str, int]:
    """Return ports for services that stop and restart."""
    return {name: lasting_port() for name in FREE_PORTS}


class ForkedStack(Stack):
    """A stack of forked processes with the services already imported, which start in a fraction of the time."""

    def _begin(self, module: str, env: Mapping[str, str], out: BinaryIO) -> subprocess.Popen[bytes]:
        log = Path(out.name)
        return cast("subprocess.Popen[bytes]", Forked(module, [], env, out=log, err=log))


def crash_at(stack: Stack, service: str, point: str) -> None:
    """Make the next launch of a service die at a crash point of docs/effects.md, such as agent.7."""
    stack.modules = {**stack.modules, service: "tests.support.processes.crashing"}
    env = {**stack.extra_env.get(service, {}), "CRASH_SERVICE": service, "CRASH_AT": point}
    stack.extra_env = {**stack.extra_env, service: env}


def relaunch(stack: Stack, service: str, *, port: int | None = None) -> None:
    """Restart a dead service, without a crash point, on its old port if no other is named."""
    env = dict(stack.extra_env.get(service, {}))
    if "CRASH_FILE" not in env:
        stack.modules = {name: module for name, module in stack.modules.items() if name != service}
    env[f"{service.upper()}_PORT"] = str(stack.processes[service].port if port is None else port)
    stack.extra_env = {**stack.extra_env, service: env}
    stack.launch(service)
    stack.wait_healthy(service)


def await_death(stack: Stack, service: str) -> None:
    """Wait until a service has killed itself. Raise AssertionError if it did not."""
    assert stack.processes[service].process.wait(_LIMIT_SECONDS) == -9, f"{service} did not die by SIGKILL"


class Person:
    """A person in one thread, over gRPC, with their own request ids."""

    _numbers = itertools.count(1)

    def __init__(self, stack: Stack, subject: str, *, thread: str = "thread-1", tenant: str = "local") -> None:
        self.stack, self.subject, self.thread, self.tenant = stack, subject, thread, tenant
        self.metadata = (("x-phylactery-subject", subject), ("x-phylactery-tenant", tenant))
        self._channels: list[grpc.Channel] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        for channel in self._channels:
            channel.close()

    def channel(self, service: str) -> grpc.Channel:
        """Open a channel to a service at its current address."""
        self._channels.append(grpc.insecure_channel(self.stack.target(service)))
        return self._channels[-1]

    def new_request_id(self) -> str:
        """Return a new request id."""
        return f"request-{next(self._numbers):06d}"

    def say(
        self, text: str, *, request_id: str = "", timeout: float = 60, shown: Mapping[str, str] | None = None
    ) -> chat_pb2.SendMessageResponse:
        """Send a message and wait for the response; ``shown`` maps ids of shown approvals to their hashes."""
        request = chat_pb2.SendMessageRequest(
            request_id=request_id or self.new_request_id(),
            thread_id=self.thread,
            text=text,
            shown_approvals=[
                chat_pb2.ShownApproval(approval_id=name, args_hash=args_hash)
                for name, args_hash in (shown or {}).items()
            ],
        )
        stub = chat_pb2_grpc.ChatServiceStub(self.channel("agent"))
        return stub.SendMessage(request, metadata=self.metadata, timeout=timeout)

    def say_and_lose(self, text: str, request_id: str, *, shown: Mapping[str, str] | None = None) -> grpc.RpcError:
        """Send a message to an agent that dies meanwhile, and return the client's error."""
        try:
            answer = self.say(text, request_id=request_id, shown=shown)
        except grpc.RpcError as error:
            return error
        raise AssertionError(f"the agent answered instead of dying: {answer.run.reason}")

    def answer(self, card: event_pb2.ApprovalRequired, request_id: str = "") -> chat_pb2.AnswerApprovalResponse:
        """Approve exactly one approval, by its id and hash, and wait for the response."""
        request = chat_pb2.AnswerApprovalRequest(
            request_id=request_id or self.new_request_id(),
            approval_id=card.approval_id,
            args_hash=card.args_hash,
            approve=True,
        )
        stub = chat_pb2_grpc.ChatServiceStub(self.channel("agent"))
        return stub.AnswerApproval(request, metadata=self.metadata, timeout=60)

    def events(self, text: str, *, request_id: str = "") -> list[event_pb2.Event]:
        """Send a message and collect the turn's events."""
        request = chat_pb2.StreamMessageRequest(
            request_id=request_id or self.new_request_id(), thread_id=self.thread, text=text
        )
        stub = chat_pb2_grpc.ChatServiceStub(self.channel("agent"))
        return [answer.event for answer in stub.StreamMessage(request, metadata=self.metadata, timeout=60)]

    def standing(self) -> chat_pb2.Thread:
        """Return the thread's state."""
        stub = chat_pb2_grpc.ChatServiceStub(self.channel("agent"))
        return stub.GetThread(
            chat_pb2.GetThreadRequest(thread_id=self.thread), metadata=self.metadata, timeout=60
        ).thread

    def run(self, run_id: str) -> run_pb2.Run:
        """Return a run with its ledger."""
        stub = run_pb2_grpc.RunServiceStub(self.channel("agent"))
        return stub.GetRun(run_pb2.GetRunRequest(run_id=run_id), metadata=self.metadata, timeout=60).run

    def await_status(self, *wanted: event_pb2.RunStatus.ValueType) -> chat_pb2.Thread:
        """Wait until the thread's last run has one of the statuses. Raise AssertionError if it never does."""
        limit = time.monotonic() + _LIMIT_SECONDS
        while time.monotonic() < limit:
            thread = self.standing()
            if thread.last_run.status in wanted:
                return thread
            time.sleep(0.05)
        raise AssertionError(f"the run stands at {thread.last_run.status} ({thread.last_run.reason})")

    @property
    def approvals(self) -> approval_pb2_grpc.ApprovalServiceStub:
        """The stub of RiskGate's approvals, called directly as this person."""
        return approval_pb2_grpc.ApprovalServiceStub(self.channel("riskgate"))

    def approval(self, approval_id: str) -> types_pb2.Approval:
        """Return an approval as this person sees it at RiskGate."""
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
        return self.approvals.GetApproval(request, metadata=self.metadata, timeout=60).approval


def yes(answer: chat_pb2.SendMessageResponse) -> str:
    """Return what the person types to approve the requested approval."""
    return f"APROBAR {answer.pending_approval.approval_id} {answer.pending_approval.code}"


def sandbox(stack: Stack, user_id: str = "ana", *, tenant: str = "local") -> Path:
    """Return the folder of the files that the agent keeps for a person."""
    return person_folder(stack.data_dir / "agent" / "sandbox", tenant, user_id)


def lines(stack: Stack, name: str = "log.txt", user_id: str = "ana", *, tenant: str = "local") -> list[str]:
    """Return the lines of a file the agent writes for a person: one line per effect."""
    path = sandbox(stack, user_id, tenant=tenant) / name
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
