"""`riskgate audit witness`: has a witness cosign the heads of the logs of a running RiskGate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc
from phylactery_chassis.util.durable_files import write_whole

from phylactery_riskgate.audit.checkpoint import Checkpoint, Cosigner, NoteError, Verifier, open_note
from phylactery_riskgate.cli.audit.cosigning import Witness, WitnessError, WitnessRefusal
from phylactery_riskgate.cli.common import FAILED, UNUSABLE, AsJson, tell, unusable, warn
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Remote, RemoteError, Target, TokenFile, connect

_SUFFIX = ".note"


def witness(
    *,
    url: Annotated[str, typer.Option("--url", help="the witness's submission prefix (C2SP tlog-witness)")],
    witness_key: Annotated[str, typer.Option("--witness-key", help="its vkey, of signature type 4")],
    out: Annotated[Path, typer.Option("--out", help="folder for the cosigned heads, a file for each log")],
    log: Annotated[list[str] | None, typer.Option("--log", help="a log's name; again for several; none is all")] = None,
    key: Annotated[str, typer.Option("--key", help="the vkey that has to have signed the heads")] = "",
    every: Annotated[float, typer.Option("--every", min=0, help="again after so many seconds; 0 is once")] = 0,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Have a witness cosign the current head of each log, and keep the cosigned heads. Needs the role auditor.

    Exit code 1: the witness saw another log, so that this one was rewritten or wound back, or RiskGate refuses. With
    --every it repeats, also after a failed connection, and ends only in these cases.
    """
    try:
        asked = Witness(url, Cosigner.parse(witness_key))
        trusted = [Verifier.parse(key)] if key else []
    except NoteError as error:
        raise unusable(f"--witness-key and --key are vkeys: {error}") from None
    out.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            code = _round(asked, trusted, out, log or (), target=target, token_file=token_file, as_json=as_json)
        except typer.Exit as ended:  # RiskGate did not answer, or refused; it said so
            code = ended.exit_code
        if code == FAILED or not every:
            raise typer.Exit(code)
        time.sleep(every)


def _round(
    asked: Witness,
    trusted: Sequence[Verifier],
    out: Path,
    names: Sequence[str],
    *,
    target: str,
    token_file: Path | None,
    as_json: bool,
) -> int:
    """Have every log cosigned once, and return the exit code."""
    code = 0
    with connect(target, token_file, as_json=as_json) as remote:
        stub = audit_pb2_grpc.AuditServiceStub(remote.channel)
        sizes = {one.name: one.size for one in remote.ask(stub.ListLogs, audit_pb2.ListLogsRequest()).logs}
        for name in names or [name for name, size in sizes.items() if size]:
            try:
                _tell(as_json, _cosigned(remote, asked, trusted, out / (quote(name, safe=":") + _SUFFIX), name))
            except WitnessRefusal as refusal:
                warn(f"REFUSED: {refusal}")
                code = FAILED
            except (WitnessError, NoteError) as error:
                warn(str(error))
                code = code or UNUSABLE
    return code


def _cosigned(remote: Remote, asked: Witness, trusted: Sequence[Verifier], path: Path, name: str) -> dict[str, Any]:
    """Have the current head of a log cosigned, and keep it at the path."""
    stub = audit_pb2_grpc.AuditServiceStub(remote.channel)
    answer = remote.ask(stub.GetCheckpoint, audit_pb2.GetCheckpointRequest(log=name))
    if trusted:
        open_note(answer.note, [Verifier(name, one.public_key) for one in trusted])

    def prove(first: int) -> Sequence[bytes]:
        request = audit_pb2.GetConsistencyProofRequest(log=name, first_size=first, second_size=answer.size)
        try:
            return list(remote.ask(stub.GetConsistencyProof, request).hashes)
        except RemoteError as error:
            if error.code != "DATA_LOSS":
                raise
            return ()  # entries are missing: the witness, which saw them, refuses the log

    note = asked.cosign(answer.note, _last_size(path), prove)
    write_whole(path, note.encode(), mode=0o666)
    return {"log": name, "size": answer.size, "witness": asked.key.name, "file": str(path), "note": note}


def _last_size(path: Path) -> int:
    """Return the number of entries that the witness saw last; the witness's own value takes precedence."""
    try:
        return Checkpoint.parse(path.read_text(encoding="utf-8").partition("\n\n")[0] + "\n").size
    except (OSError, UnicodeDecodeError, NoteError):
        return 0


def _tell(as_json: bool, facts: dict[str, Any]) -> None:
    text = f"cosigned: log '{facts['log']}' of {facts['size']} entries, by {facts['witness']}, in {facts['file']}"
    tell(as_json, facts, text)
