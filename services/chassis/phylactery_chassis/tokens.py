"""Making static tokens: the token is shown once, and only its hash is kept."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import yaml

from phylactery_chassis.identity import Role, TokenAuthenticator, TokensFileError, token_hash

_RANDOM_BYTES = 32


def add_token(path: Path, *, subject: str, tenant: str, roles: Sequence[Role], level: str = "user") -> str:
    """Adds a new identity to a tokens file, creating it with mode 0600, and answers its token.

    Raises TokensFileError when the file is damaged or the identity not valid; the file is then as it was.
    """
    try:
        entries = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).get("tokens", []) if path.exists() else []
    except (yaml.YAMLError, AttributeError):
        raise TokensFileError(f"{path}: is not a tokens file; mend or remove it") from None
    token = "phy_" + secrets.token_urlsafe(_RANDOM_BYTES)
    entry = {
        "hash": token_hash(token),
        "subject": subject,
        "tenant": tenant,
        "roles": [str(role) for role in roles],
        "level": level,
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        yaml.safe_dump({"tokens": [*entries, entry]}, out, sort_keys=False)
        out.flush()
        os.fsync(out.fileno())
    try:
        TokenAuthenticator(part)  # the same reader the services use has the last word
    except TokensFileError as error:
        part.unlink()
        raise TokensFileError(str(error).replace(str(part), str(path))) from None
    part.replace(path)
    return token
