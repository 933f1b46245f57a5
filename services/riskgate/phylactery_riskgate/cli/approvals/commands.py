"""`riskgate approvals`: see what waits for a person, and answer it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc, types_pb2

from phylactery_riskgate.cli.approvals.view import ApprovalView, as_json, console, safe, state_of
from phylactery_riskgate.cli.common import FAILED, AsJson, unusable
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Remote, RemoteError, Target, TokenFile, connect

app = typer.Typer(no_args_is_help=True, help="Approvals: list, show, approve, reject, cancel, watch.")

ApprovalId = Annotated[str, typer.Argument(metavar="ID", help="the approval's id")]
Full = Annotated[bool, typer.Option("--full", help="show long values whole")]
Reason = Annotated[str, typer.Option("--reason", help="why, in your own words")]

CONFIRM_CHARACTERS = 4
"""Number of characters of the hash that a person types as confirmation."""
_ALL = "ALL"
_PAGE = 200
_RETRY_SECONDS = 2.0
_STATES = [name.removeprefix("APPROVAL_STATE_") for name in types_pb2.ApprovalState.keys()[1:]]


class _Desk:
    """Where one person answers: the connection, the stubs, and what they see."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._stub = approval_pb2_grpc.ApprovalServiceStub(remote.channel)
        self.out = console()
        self.view = ApprovalView(self.out)
        self.say = self.view.say

    def get(self, approval_id: str, *, full: bool = False) -> types_pb2.Approval:
        """Return one approval, with ``full`` long values whole."""
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id, full=full)
        return self._remote.ask(self._stub.GetApproval, request).approval

    def pages(self, **wanted: Any) -> Iterator[types_pb2.Approval]:
        """Yield approvals, newest first."""
        token = ""
        while True:
            request = approval_pb2.ListApprovalsRequest(page_size=_PAGE, page_token=token, **wanted)
            page = self._remote.ask(self._stub.ListApprovals, request)
            yield from page.approvals
            token = page.next_page_token
            if not token:
                return

    def approve(self, seen: types_pb2.Approval) -> types_pb2.Approval:
        """Approve exactly the call that was shown."""
        request = approval_pb2.ApproveRequest(
            approval_id=seen.id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id
        )
        return self._remote.ask(self._stub.Approve, request).approval

    def reject(self, approval_id: str, reason: str) -> types_pb2.Approval:
        """Say no."""
        request = approval_pb2.RejectRequest(approval_id=approval_id, reason=reason)
        return self._remote.ask(self._stub.Reject, request).approval

    def cancel(self, approval_id: str, reason: str) -> types_pb2.Approval:
        """Withdraw."""
        request = approval_pb2.CancelRequest(approval_id=approval_id, reason=reason)
        return self._remote.ask(self._stub.Cancel, request).approval

    def changes(self, token: str, *, thread: str) -> Iterator[approval_pb2.WatchApprovalsResponse]:
        """Yield the open approvals and then every change; with a token, the changes after it."""
        request = approval_pb2.WatchApprovalsRequest(resume_token=token, snapshot=not token, thread_id=thread)
        return self._remote.stream(self._stub.WatchApprovals, request)

    def confirmed(self, seen: types_pb2.Approval, *, full: bool) -> bool:
        """Show everything, ask for the end of the hash, and say whether the person typed it."""
        self.view.whole(seen, full=full)
        question = self.say("confirm", count=CONFIRM_CHARACTERS)
        return _ask(question).strip().lower() == seen.args_hash[-CONFIRM_CHARACTERS:]

    def tell(self, approval: types_pb2.Approval, *, json_: bool) -> None:
        """Print the state of an approval."""
        if json_:
            typer.echo(as_json(approval))
        elif state_of(approval) == "PENDING":
            needed = approval.votes_needed
            typer.echo(self.say("voted", id=safe(approval.id), votes=approval.votes, needed=needed))
        else:
            typer.echo(self.say("done", id=safe(approval.id), state=state_of(approval)))

    def nothing(self) -> typer.Exit:
        """Report that nothing was changed, and return the exception to raise."""
        typer.echo(self.say("unchanged"), err=True)
        return typer.Exit(FAILED)


def _ask(question: str) -> str:
    return str(typer.prompt(question, default="", show_default=False))


@app.command("list")
def approvals_list(
    *,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    state: Annotated[str, typer.Option("--state", help="PENDING, APPROVED, …, or ALL")] = "PENDING",
    thread: Annotated[str, typer.Option("--thread", help="only approvals of this thread")] = "",
    limit: Annotated[int, typer.Option("--limit", min=1, help="how many at most")] = 100,
    as_json_: AsJson = False,
) -> None:
    """List approvals you may see, newest first; ● marks those that wait for your own answer."""
    wanted = state.upper()
    if wanted not in (*_STATES, _ALL):
        raise unusable(f"--state {safe(state)}: one of {', '.join(_STATES)} or {_ALL}")
    number = (
        types_pb2.APPROVAL_STATE_UNSPECIFIED
        if wanted == _ALL
        else types_pb2.ApprovalState.Value(f"APPROVAL_STATE_{wanted}")
    )
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        found: list[types_pb2.Approval] = []
        more = False
        for approval in desk.pages(state=number, thread_id=thread):
            more = len(found) == limit
            if more:
                break
            found.append(approval)
        if as_json_:
            facts = {"approvals": [json.loads(as_json(one)) for one in found], "more": more}
            typer.echo(json.dumps(facts, sort_keys=True))
            return
        if not found:
            typer.echo(desk.say("nothing_waits" if wanted == "PENDING" else "none"))
            return
        desk.view.table(found)
        if more:
            typer.echo(desk.say("more"), err=True)


@app.command("show")
def approvals_show(
    approval_id: ApprovalId,
    *,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    full: Full = False,
    as_json_: AsJson = False,
) -> None:
    """Show one approval: the call, its arguments, what changed, and the policies that require approval."""
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        approval = desk.get(approval_id, full=full)
        if as_json_:
            typer.echo(as_json(approval))
        else:
            desk.view.whole(approval, full=full)


@app.command("approve")
def approvals_approve(
    approval_id: ApprovalId,
    *,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask; goes with --args-hash")] = False,
    args_hash: Annotated[str, typer.Option("--args-hash", help="the hash of the arguments shown to you")] = "",
    full: Full = False,
    as_json_: AsJson = False,
) -> None:
    """Show one approval and approve exactly that call. Exit code 1: refused, or not confirmed."""
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        if yes and not args_hash:
            raise unusable(desk.say("yes_needs_hash"))
        if not yes and (as_json_ or not sys.stdin.isatty()):
            raise unusable(desk.say("no_terminal"))
        seen = desk.get(approval_id, full=full)
        problem = ""
        if args_hash and args_hash != seen.args_hash:
            problem = desk.say("other_hash", id=safe(seen.id))
        elif not yes and state_of(seen) != "PENDING":
            problem = desk.say("not_pending", id=safe(seen.id), state=state_of(seen))
        if problem:
            raise RemoteError("FAILED_PRECONDITION", problem, "ARGS_MISMATCH" if args_hash else "APPROVAL_NOT_PENDING")
        if not yes and not desk.confirmed(seen, full=full):
            raise desk.nothing()
        if yes and (note := desk.view.cut_note(seen, full=full)):
            typer.echo(note, err=True)
        desk.tell(desk.approve(seen), json_=as_json_)


@app.command("reject")
def approvals_reject(
    approval_id: ApprovalId,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    reason: Reason = "",
    as_json_: AsJson = False,
) -> None:
    """Reject one approval. Exit code 1: refused."""
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        desk.tell(desk.reject(approval_id, reason), json_=as_json_)


@app.command("cancel")
def approvals_cancel(
    approval_id: ApprovalId,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    reason: Reason = "",
    as_json_: AsJson = False,
) -> None:
    """Withdraw an approval you requested, even after it was approved. Exit code 1: refused."""
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        desk.tell(desk.cancel(approval_id, reason), json_=as_json_)


@app.command("watch")
def approvals_watch(
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    thread: Annotated[str, typer.Option("--thread", help="only approvals of this thread")] = "",
    ask: Annotated[bool, typer.Option("--ask/--no-ask", help="answer pending approvals interactively")] = True,
    as_json_: AsJson = False,
) -> None:
    """Print approvals as they arrive and change, and let you answer those that wait for you. Ctrl-C ends."""
    with connect(target, token_file, as_json=as_json_) as remote:
        desk = _Desk(remote)
        asking = ask and not as_json_ and sys.stdin.isatty()
        if not as_json_:
            typer.echo(desk.say("watching", target=safe(target)), err=True)
        try:
            _follow(desk, thread, _answering(desk) if asking else _printing(desk, as_json_=as_json_))
        except (KeyboardInterrupt, typer.Abort, EOFError):
            raise typer.Exit from None


def _follow(desk: _Desk, thread: str, handle: Callable[[types_pb2.Approval], None]) -> None:
    """Yield every change, including those made while disconnected; raise errors that waiting cannot resolve."""
    token, quiet = "", False
    while True:
        try:
            for message in desk.changes(token, thread=thread):
                token, quiet = message.resume_token or token, False
                if message.HasField("approval"):
                    handle(message.approval)
            why = ""  # RiskGate ends a stream when it stops
        except RemoteError as error:
            if error.code != "UNAVAILABLE":
                raise
            why = error.reason or error.code
        if not quiet:
            typer.echo(desk.say("lost", why=why or "OK"), err=True)
            quiet = True
        time.sleep(_RETRY_SECONDS)


def _printing(desk: _Desk, *, as_json_: bool) -> Callable[[types_pb2.Approval], None]:
    def handle(approval: types_pb2.Approval) -> None:
        if as_json_:
            typer.echo(as_json(approval))
            sys.stdout.flush()
        else:
            desk.view.changed(approval)

    return handle


def _answering(desk: _Desk) -> Callable[[types_pb2.Approval], None]:
    """Return what prints a change, and ask where it waits for this person."""

    def handle(change: types_pb2.Approval) -> None:
        desk.view.changed(change)
        if not change.answerable:
            return
        seen = desk.get(change.id)  # it may have been answered meanwhile, and a stream holds no comparison
        if not seen.answerable:
            return
        desk.out.print()
        desk.view.whole(seen)
        try:
            _answer(desk, seen)
        except RemoteError as error:
            if error.code == "UNAVAILABLE":
                raise
            typer.echo(safe(error.sentence), err=True)

    return handle


def _answer(desk: _Desk, seen: types_pb2.Approval) -> None:
    """Ask for one key and do what it says."""
    match _ask(desk.say("ask")).strip().lower()[:1]:
        case "a":
            typed = _ask(desk.say("confirm", count=CONFIRM_CHARACTERS)).strip().lower()
            if typed == seen.args_hash[-CONFIRM_CHARACTERS:]:
                desk.tell(desk.approve(seen), json_=False)
            else:
                typer.echo(desk.say("unchanged"))
        case "r":
            desk.tell(desk.reject(seen.id, _ask(desk.say("ask_reason"))), json_=False)
        case "q":
            raise typer.Abort
        case _:
            typer.echo(desk.say("unchanged"))
