"""People who talk to the running services without a model, each a tenant's only person with a folder of their own."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grpc
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, form_pb2, form_pb2_grpc
from phylactery_agent.tools.named_folders import make_person_folder
from phylactery_chassis.util.ids import new_id
from phylactery_cli.supervisor import Stack, running

from benchmarks.stack import FREE_PORTS, QUIET

_TIMEOUT: Final = 60.0
THREAD: Final = "talk"


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a message."""

    text: str
    tools: Sequence[str]
    seconds: float


@dataclass
class Speaker:
    """A person in one thread; what a chat has shown of an approval goes along with their next message."""

    channel: grpc.Channel
    tenant: str
    folder: Path
    shown: list[chat_pb2.ShownApproval] = field(default_factory=list)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Return who it is."""
        return (("x-phylactery-subject", "person"), ("x-phylactery-tenant", self.tenant))

    def say(self, text: str) -> Reply:
        """Send a message."""
        chat = chat_pb2_grpc.ChatServiceStub(self.channel)
        request = chat_pb2.StreamMessageRequest(
            request_id=new_id("request"), thread_id=THREAD, text=text, shown_approvals=self.shown
        )
        began = time.perf_counter()
        events = [one.event for one in chat.StreamMessage(request, metadata=self.metadata, timeout=_TIMEOUT)]
        seconds = time.perf_counter() - began
        asked = chat_pb2.GetThreadRequest(thread_id=THREAD)
        self.shown = _card(chat.GetThread(asked, metadata=self.metadata, timeout=_TIMEOUT).thread)
        reply = "\n".join(one.message.text for one in events if one.HasField("message"))
        return Reply(reply, tuple(one.tool_proposed.tool for one in events if one.HasField("tool_proposed")), seconds)

    def form(self) -> form_pb2.FormState | None:
        """Return the newest session of the thread, None without one."""
        forms = form_pb2_grpc.FormServiceStub(self.channel)
        request = form_pb2.GetFormStateRequest(thread_id=THREAD)
        try:
            return forms.GetFormState(request, metadata=self.metadata, timeout=_TIMEOUT).state
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return None
            raise

    def submissions(self) -> list[Mapping[str, str]]:
        """Return the values of what was submitted."""
        forms = form_pb2_grpc.FormServiceStub(self.channel)
        found = forms.ListSubmissions(form_pb2.ListSubmissionsRequest(), metadata=self.metadata, timeout=_TIMEOUT)
        return [{one.field: one.value for one in each.values} for each in found.submissions if each.submission_id]


@dataclass(frozen=True, slots=True)
class Served:
    """The running services."""

    stack: Stack
    channel: grpc.Channel

    def speaker(self, tenant: str, files: Mapping[str, str] | None = None) -> Speaker:
        """Return a new person with files in their folder."""
        folder = make_person_folder(self.stack.data_dir / "agent" / "sandbox", tenant, "person")
        for name, content in (files or {}).items():
            (folder / name).write_text(content, encoding="utf-8")
        return Speaker(self.channel, tenant, folder)


@contextmanager
def served(forms: Path, **agent: str) -> Iterator[Served]:
    """Run the services with a folder of forms, and further settings of the agent."""
    env = {**QUIET, "agent": {**QUIET["agent"], "AGENT_FORMS_DIR": str(forms), **agent}}
    with (
        tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder,
        running(Stack(Path(folder), FREE_PORTS, extra_env=env)) as stack,
        closing(grpc.insecure_channel(stack.target("agent"))) as channel,
    ):
        yield Served(stack, channel)


def _card(thread: chat_pb2.Thread) -> list[chat_pb2.ShownApproval]:
    """Return what a chat has shown of the approvals that wait, if it is one card."""
    if not thread.HasField("pending_approval"):
        return []
    first = thread.pending_approval
    return [
        chat_pb2.ShownApproval(approval_id=one.approval_id, args_hash=one.args_hash) for one in (first, *first.also)
    ]
