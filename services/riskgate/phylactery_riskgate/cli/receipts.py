"""`riskgate receipt`: the proof of one decision and of what became of it, fetched and checked offline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.audit.receipts import check_receipt
from phylactery_riskgate.cli.audit.commands import public_keys, read_text
from phylactery_riskgate.cli.audit.remote import reference
from phylactery_riskgate.cli.common import FAILED, AsJson, tell
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Target, TokenFile, connect

_APPROVAL = "ap_"
_FIELDS = ("decision", "answer", "state", "closed_reason", "outcome", "reason", "failed", "tool", "approval_class")
"""What of a record its line shows, where it is there."""

app = typer.Typer(no_args_is_help=True, help="Receipts: the proof of one decision, checked offline.")


@app.command("get")
def get(
    of: Annotated[
        str, typer.Argument(metavar="ID", help="a decision, an evaluation, an approval, or an entry as LOG:INDEX")
    ],
    *,
    values: Annotated[
        bool, typer.Option("--values", help="with the argument values, sensitive ones excepted; keep the file safe")
    ] = False,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
) -> None:
    """Print the receipt of a decision, whatever it was: keep it in a file, and check it with `riskgate receipt verify`.

    Of your own calls; an auditor gets that of every call of the tenant.
    """
    request = audit_pb2.GetReceiptRequest(include_values=values)
    if ":" in of:
        request.entry.CopyFrom(reference(of))
    elif of.startswith(_APPROVAL):
        request.approval_id = of
    else:
        request.decision_id = of
    with connect(target, token_file) as remote:
        answer = remote.ask(audit_pb2_grpc.AuditServiceStub(remote.channel).GetReceipt, request)
    typer.echo(answer.receipt, nl=False)


@app.command("verify")
def verify(
    file: Annotated[Path, typer.Argument(help="a receipt that `riskgate receipt get` printed")],
    *,
    key: Annotated[
        str,
        typer.Option(
            "--key",
            help="trusted key: a JWK, JWK Set or vkey, or a file that contains it; `riskgate keys export` prints them",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Check a receipt offline and print what it proves.

    Exit code 1: it is altered, or no trusted key signed its heads.
    """
    found = check_receipt(read_text(file), public_keys(key))
    facts = {"ok": not found.problem, "of": found.of, "problem": found.problem, "left_out": found.left_out}
    if found.problem:
        tell(as_json, facts | {"records": []}, f"NOT VERIFIED: {found.problem}")
        raise typer.Exit(FAILED)
    lines = [f"verified: {len(found.records)} records about '{found.of}' are in the log"]
    lines += [_line(record) for record in found.records]
    if found.left_out:
        lines.append(f"{found.left_out} further refusals are on record; `riskgate audit list` shows them")
    lines.append("Only what is in the receipt is proved, not that nothing followed: get another one to see what has")
    tell(as_json, facts | {"records": list(found.records)}, "\n".join(lines))


def _line(record: Mapping[str, Any]) -> str:
    """Return what a record says, in one line."""
    time_us = record.get("time_us")
    moment = to_timestamp(time_us).ToJsonString() if isinstance(time_us, int) else "?"
    codes = [str(one.get("code")) for one in record.get("reasons") or () if isinstance(one, dict)]
    told = [f"{name} {_text(record[name])}" for name in _FIELDS if record.get(name)]
    told += [f"reasons {', '.join(codes)}"] if codes else []
    who = f"by {_text(record.get('subject') or 'riskgate')} of {_text(record.get('tenant') or 'no tenant')}"
    who += f" through {_text(record['actor'])}" if record.get("actor") else ""
    who += f", roles {_text(record['roles'])}" if record.get("roles") else ""
    if record.get("bundle_hash"):
        told.append(f"bundle {record.get('bundle_revision')} {record['bundle_hash']}")
    return f"  {record.get('log')}:{record.get('index')}  {moment}  {record.get('kind')}  {who}: {'; '.join(told)}"


def _text(value: Any) -> str:
    """Return a value in one line of text."""
    if isinstance(value, list):
        return ", ".join(_text(one) for one in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
