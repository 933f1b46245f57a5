"""Changes to the signing keys while replicas run: create, rotate, revoke.

The signing file is replaced atomically, under a lock file: after kill -9 it is the old one or the new one, and of two
concurrent changes the second starts from the result of the first. The private half of a key is removed as soon as it
signs nothing new. Running servers follow the file (keys.live).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from phylactery_riskgate.keys.ring import (
    KeysError,
    KeyState,
    SigningFile,
    SigningKey,
    create_missing,
    read_signing,
    read_signing_file,
    write_signing_file,
)


@dataclass(frozen=True, slots=True)
class KeyChange:
    """The result of a change: the active key, and whether anything changed."""

    active_kid: str
    changed: bool


def create(path: Path, now_us: int) -> KeyChange:
    """Create a signing file with one active key, unless it exists. Raise KeysError."""
    with _locked(path):
        missing = not path.exists()
        if missing:
            create_missing(path, lambda: SigningFile.fresh(now_us).content)
        return KeyChange(_active(path), missing)


def rotate(path: Path, now_us: int) -> KeyChange:
    """Create a new active key; the former one becomes RETIRING and still verifies. Raise KeysError."""
    with _locked(path):
        keys = _with_new_active(_read(path), KeyState.RETIRING, now_us)
        write_signing_file(path, keys)
        return KeyChange(_active(path), changed=True)


def revoke(path: Path, kid: str, now_us: int) -> KeyChange:
    """Revoke a key: its signatures are not accepted any more. An active key gets a successor in the same step.

    Raise KeysError if no key has this kid.
    """
    with _locked(path):
        keys = _read(path)
        found = next((key for key in keys if key.kid == kid), None)
        if found is None:
            raise KeysError(f"{path}: key {kid} not found; `riskgate keys list` lists the keys")
        if found.state is KeyState.REVOKED:
            return KeyChange(_active(path), changed=False)
        if found.state is KeyState.ACTIVE:
            keys = _with_new_active(keys, KeyState.REVOKED, now_us)
        else:
            keys = [_ended(key, KeyState.REVOKED, now_us) if key is found else key for key in keys]
        write_signing_file(path, keys)
        return KeyChange(_active(path), changed=True)


def _with_new_active(keys: list[SigningKey], former: KeyState, now_us: int) -> list[SigningKey]:
    ended = [_ended(key, former, now_us) if key.state is KeyState.ACTIVE else key for key in keys]
    return [SigningKey.fresh(now_us), *ended]


def _ended(key: SigningKey, state: KeyState, now_us: int) -> SigningKey:
    """Return the key in its next state, without its private half."""
    when = {"retire_us": now_us} if state is KeyState.RETIRING else {"revoke_us": now_us}
    return key.model_copy(update={"state": state, "jwk": key.jwk.model_copy(update={"d": None}), **when})


def _read(path: Path) -> list[SigningKey]:
    read_signing(path)  # refuses an invalid file: a change never builds on a damaged one
    return read_signing_file(path).keys


def _active(path: Path) -> str:
    return read_signing(path)[0][0].kid


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock file, which the operating system releases however the process ends."""
    try:
        descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise KeysError(f"{path}: no key exists yet; start the service once, or run: riskgate keys create") from None
    except OSError as error:
        raise KeysError(f"{path.parent}: the keys cannot be changed here ({error.strerror})") from None
    with os.fdopen(descriptor, "w"):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
