"""Static tokens in a file: create, list, revoke. A token is shown once; only its hash is stored."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from phylactery_chassis.auth.identity import Role, TokenEntry, TokensFileError, parse_tokens, read_tokens, token_hash
from phylactery_chassis.util.durable_files import whole_file

_RANDOM_BYTES = 32
_ID_CHARACTERS = 12
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A token as listed. Its id distinguishes it and reveals nothing of the token itself."""

    id: str
    entry: TokenEntry

    @property
    def expired(self) -> bool:
        """True if the token has expired by this machine's clock."""
        return self.entry.expires is not None and self.entry.expires <= datetime.now(UTC)


def list_tokens(path: Path) -> list[Listed]:
    """Return the tokens of a file, in file order. Raise TokensFileError."""
    return [Listed(_id_of(entry.hash), entry) for entry in read_tokens(path)]


def add_token(
    path: Path,
    *,
    subject: str,
    tenant: str,
    roles: Sequence[Role],
    level: str = "user",
    groups: Sequence[str] = (),
    tools: Sequence[str] = (),
    expires: datetime | None = None,
    display_name: str = "",
) -> str:
    """Add a new identity to a tokens file, creating it with mode 0600, and return its token.

    Raise TokensFileError if the file is damaged or the identity is invalid; the file is then unchanged.
    """
    token = "phy_" + secrets.token_urlsafe(_RANDOM_BYTES)
    entry: dict[str, Any] = {
        "hash": token_hash(token),
        "subject": subject,
        "tenant": tenant,
        "roles": [str(role) for role in roles],
        "level": level,
    }
    optional = {"groups": list(groups), "tools": list(tools), "expires": expires, "display_name": display_name}
    entry |= {name: value for name, value in optional.items() if value}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _change(path, lambda entries: [*entries, entry])
    return token


def revoke_tokens(path: Path, *, ids: Sequence[str] = (), subject: str = "", tenant: str = "") -> list[Listed]:
    """Remove tokens by id, or all of a subject, a tenant, or a subject in a tenant; return the removed ones.

    Raise TokensFileError if the file is damaged, or if an id or a subject matches no token; the file is then unchanged.
    """
    gone: list[Listed] = []

    def without(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        listed = list_tokens(path)
        unknown = [one for one in ids if one not in {each.id for each in listed}]
        if unknown:
            raise TokensFileError(f"{path}: token '{unknown[0]}' not found; list them to see their ids")
        gone[:] = [
            one
            for one in listed
            if one.id in ids
            or ((subject or tenant) and subject in ("", one.entry.subject) and tenant in ("", one.entry.tenant))
        ]
        if not gone:
            raise TokensFileError(f"{path}: no token of this subject and tenant; list them to see whose there are")
        hashes = {one.entry.hash for one in gone}
        return [entry for entry in entries if entry["hash"] not in hashes]

    _change(path, without)
    return gone


def _change(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Replace the entries of a file with the result of ``change``, atomically and under a lock."""
    path = path.resolve()  # keep a symbolic link
    with _alone(path.parent):
        if path.exists():
            read_tokens(path)
            entries = yaml.safe_load(path.read_text(encoding="utf-8"))["tokens"]
        else:
            entries = []
        text = yaml.safe_dump({"tokens": change(entries)}, sort_keys=False)
        parse_tokens(path, text)  # validate with the reader that services use
        with whole_file(path) as file:
            with contextlib.suppress(FileNotFoundError, PermissionError):  # the owner and mode of the file it replaces
                seen = path.stat()
                os.fchmod(file.fileno(), seen.st_mode & 0o777)
                os.fchown(file.fileno(), seen.st_uid, seen.st_gid)
            file.write(text.encode())


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder, so that the second of two concurrent commands sees what the first wrote."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def token_id(token: str) -> str:
    """Return the id a token is listed by."""
    return _id_of(token_hash(token))


def parse_expiry(text: str) -> datetime | None:
    """Return the expiry time, None for an empty text. Raise ValueError if it is not a future time."""
    if not text:
        return None
    now = datetime.now(UTC).replace(microsecond=0)
    unit = _UNITS.get(text[-1])
    if unit is not None and text[:-1].isascii() and text[:-1].isdigit():
        try:
            ends = now + timedelta(**{unit: int(text[:-1])})
        except OverflowError:
            raise ValueError(f"'{text}' is too far away; leave it out for no end") from None
    else:
        try:
            ends = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"'{text}' is not a time such as 2027-01-31T12:00:00Z, nor 90d, 12h or 30m") from None
        if ends.tzinfo is None:
            raise ValueError(f"'{text}' has no time zone; write it with Z or +01:00")
    if ends <= now:
        raise ValueError(f"'{text}' is not in the future")
    return ends.astimezone(UTC)


def _id_of(kept: str) -> str:
    return kept.removeprefix("sha256:")[:_ID_CHARACTERS]
