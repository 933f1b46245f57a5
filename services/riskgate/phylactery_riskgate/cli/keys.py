"""`riskgate keys`: what RiskGate signs with."""

from __future__ import annotations

import typer

from phylactery_riskgate.checkpoint import Verifier
from phylactery_riskgate.cli.common import AsJson, DataDir, settings_of, tell, unusable
from phylactery_riskgate.keys import KeysError, read_public_keys

app = typer.Typer(no_args_is_help=True, help="The public keys.")


@app.command("list")
def keys_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Lists the public keys as kid, state and vkey."""
    settings = settings_of(data_dir=data_dir)
    try:
        found = read_public_keys(settings.keys_dir)
    except KeysError as error:
        raise unusable(str(error)) from None
    described = [
        {"kid": one.kid, "state": str(one.state), "jwk": one.jwk, "vkey": Verifier(settings.issuer, one.raw).text}
        for one in found
    ]
    text = "\n".join(f"{one['kid']}  {one['state']}  {one['vkey']}" for one in described)
    tell(as_json, {"issuer": settings.issuer, "keys": described}, text)
