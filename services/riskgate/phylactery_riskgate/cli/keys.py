"""`riskgate keys`: what RiskGate signs with.

Every command works on the keys folder itself (RISKGATE_KEYS_DIR, or keys in the data folder), also while replicas run:
they follow it before they sign or verify anything else. What was changed is recorded in the audit log where the
database can be reached from here; else a RiskGate that serves records it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer
from phylactery_chassis.util.clock import MICROSECONDS, SystemClock
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate import key_changes
from phylactery_riskgate.checkpoint import Verifier
from phylactery_riskgate.cli.common import AsJson, DataDir, settings_of, tell, unusable
from phylactery_riskgate.cli.key_recording import database_here, record_change
from phylactery_riskgate.keys import KeysError, KeyState, PublicKey, load_keys, read_signing
from phylactery_riskgate.settings import RiskGateSettings

app = typer.Typer(no_args_is_help=True, help="The signing keys: make, rotate, revoke, list, export.")


@app.command("create")
def keys_create(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Makes the keys a first start would make; what is there stays as it is."""
    settings = settings_of(data_dir=data_dir)

    def create(now_us: int) -> key_changes.KeyChange:
        settings.signing_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        change = key_changes.create(settings.signing_file, now_us)
        load_keys(settings.keys_dir, settings.signing_key_file)
        return change

    change = _changed(create)
    what = "made" if change.changed else "is there already and stays as it is"
    _tell(as_json, settings, change, f"{settings.signing_file} {what}; {change.active_kid} signs")


@app.command("rotate")
def keys_rotate(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Makes a new key active. What the former one signed still verifies; it signs nothing new."""
    settings = settings_of(data_dir=data_dir)
    change = _changed(lambda now_us: key_changes.rotate(settings.signing_file, now_us))
    _tell(as_json, settings, change, f"rotated: {change.active_kid} signs from now on")


# an id is base64url, so it may begin with a hyphen: it is no option then
@app.command("revoke", context_settings={"ignore_unknown_options": True})
def keys_revoke(
    kid: Annotated[str, typer.Argument(help="the key's id, as `riskgate keys list` shows it")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Lets a key verify nothing any more; the active one gets a successor in the same step."""
    settings = settings_of(data_dir=data_dir)
    change = _changed(lambda now_us: key_changes.revoke(settings.signing_file, kid, now_us))
    what = "revoked" if change.changed else "was revoked before"
    _tell(as_json, settings, change, f"{kid} {what}; {change.active_kid} signs")


@app.command("list")
def keys_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Lists the public keys as kid, state, since when they are in it, and vkey."""
    settings = settings_of(data_dir=data_dir)
    described = [
        {
            "kid": one.kid,
            "state": str(one.state),
            "jwk": one.jwk,
            "vkey": Verifier(settings.issuer, one.raw).text,
            "create_time": _written(one.create_us),
            "retire_time": _written(one.retire_us),
            "revoke_time": _written(one.revoke_us),
        }
        for one in _public(settings)
    ]
    lines = [f"{'kid':43}  {'state':8}  {'in it since':27}  vkey"]
    lines += [
        f"{one['kid']}  {one['state']:8}  {one['revoke_time'] or one['retire_time'] or one['create_time'] or '-':27}"
        f"  {one['vkey']}"
        for one in described
    ]
    tell(as_json, {"issuer": settings.issuer, "keys": described}, "\n".join(lines))


@app.command("export")
def keys_export(
    data_dir: DataDir = None,
    everything: Annotated[bool, typer.Option("--all", help="revoked keys too, marked as such")] = False,
) -> None:
    """Prints the public keys as a JWK Set (RFC 7517): what `audit verify --key` and any JOSE library read."""
    found = [key for key in _public(settings_of(data_dir=data_dir)) if everything or key.state is not KeyState.REVOKED]
    typer.echo(json.dumps({"keys": [_jwk(key) for key in found]}, indent=1, sort_keys=True))


def _public(settings: RiskGateSettings) -> tuple[PublicKey, ...]:
    try:
        return read_signing(settings.signing_file, mounted=settings.signing_key_file is not None)[0]
    except KeysError as error:
        raise unusable(str(error)) from None


def _changed(change: Callable[[int], key_changes.KeyChange]) -> key_changes.KeyChange:
    try:
        return change(SystemClock().now_us())
    except KeysError as error:
        raise unusable(str(error)) from None
    except OSError as error:
        raise unusable(f"{error.filename}: the keys cannot be changed here ({error.strerror})") from None


def _tell(as_json: bool, settings: RiskGateSettings, change: key_changes.KeyChange, text: str) -> None:
    """Records the change and says what was done; the change stands where it could not be recorded."""
    here = database_here(settings)
    problem = record_change(settings) if here else ""
    facts = {
        "file": str(settings.signing_file),
        "active": change.active_kid,
        "changed": change.changed,
        "recorded": here and not problem,
    }
    tell(as_json, facts, text)
    if problem:
        typer.echo(
            f"riskgate: not in the audit log yet ({problem}); a RiskGate that serves records it within "
            f"{settings.checkpoint_seconds:g} s",
            err=True,
        )


def _jwk(key: PublicKey) -> dict[str, Any]:
    """Answers a member of the JWK Set; times as OpenID Federation's historical keys write them, in seconds."""
    times: dict[str, Any] = {"iat": key.create_us // MICROSECONDS} if key.create_us else {}
    if key.state is KeyState.REVOKED:
        times["revoked"] = {"revoked_at": key.revoke_us // MICROSECONDS}
    return {**key.jwk, **times}


def _written(when_us: int) -> str:
    return to_timestamp(when_us).ToJsonString() if when_us else ""
