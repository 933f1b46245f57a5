"""Names of the folders that belong to tenants and to the people in them.

The folder of a name of lower-case letters, digits and ``_ . @ : -`` has that name; that of any other has a readable
part and a hash. So two names never share a folder, also where the file system takes "Ana" for "ana" or one spelling of
an accent for another, and no name leaves its folder, is hidden, reserved or too long. The prefix tells these folders
from those of releases up to 0.2, in which a tenant's files lay directly below the tenant's name.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote, unquote

from phylactery_chassis.util.durable_files import sync_folder, write_whole
from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["tenant", "user"]

SHARED: Final = "shared"
"""The folder of a workspace that holds the shared folders, where its tenant has any."""
_HARMLESS: Final = re.compile(r"[a-z0-9_.@:-]{1,200}")
_OTHER: Final = re.compile(r"[^a-z0-9_.@:-]+")
_READABLE_CHARS: Final = 40
_HASH_DIGITS: Final = 32
_NAME_FILE: Final = ".name"
"""Ending of the file next to a hashed folder, which holds its whole name."""


class SharedFolder(BaseModel):
    """A folder that the people of a tenant see as ``shared/<name>``. Only what is writable can be changed there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: str = Field(min_length=1)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,63}$")
    path: Path
    writable: bool = False


def folder_name(kind: Kind, name: str) -> str:
    """Return the name of the folder of a tenant or user."""
    if _HARMLESS.fullmatch(name) and not name.endswith("."):  # some systems drop a final dot
        return f"{kind}={name}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{kind}={_OTHER.sub('-', name.lower())[:_READABLE_CHARS]}~{digest}"


def person_folder(root: Path, tenant: str, user_id: str) -> Path:
    """Return the folder of one person below a root; it may not exist yet. Raise ValueError for an empty name."""
    if not tenant or not user_id:
        raise ValueError("a folder belongs to a user of a tenant")
    return root / folder_name("tenant", tenant) / folder_name("user", user_id)


def make_person_folder(root: Path, tenant: str, user_id: str) -> Path:
    """Return the folder of one person, created durably with mode 0700 if it was missing. Raise OSError."""
    folder = person_folder(root, tenant, user_id)
    if not folder.is_dir():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for one, name in ((folder.parent, tenant), (folder, user_id)):
            if "~" in one.name:  # before the folder: whoever finds the folder can say whose it is
                write_whole(one.with_name(one.name + _NAME_FILE), json.dumps(name).encode())
            one.mkdir(mode=0o700, exist_ok=True)
            sync_folder(one.parent)
    return folder


def people_below(root: Path) -> Iterator[tuple[str, str]]:
    """Yield tenant and user of every person with a folder below a root."""
    for folder in sorted(root.glob("tenant=*/user=*")):
        if folder.is_dir():
            with suppress(OSError, ValueError):
                yield _name_of(folder.parent), _name_of(folder)


def remove_person_folder(root: Path, tenant: str, user_id: str) -> None:
    """Remove a person's folder and everything in it durably, and then its name. Raise OSError."""
    folder = person_folder(root, tenant, user_id)
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.with_name(folder.name + _NAME_FILE).unlink(missing_ok=True)
    if folder.parent.is_dir():
        sync_folder(folder.parent)


def is_named(name: str) -> bool:
    """Return True for the folder name of a tenant."""
    return name.startswith("tenant=")


def former_owner(name: str) -> str:
    """Return the tenant or user of a folder of releases up to 0.2, percent-encoded; empty for any other folder."""
    owner = unquote(name)
    encoded = quote(owner, safe="@:")
    return owner if name == ("%2E" + encoded[1:] if encoded.startswith(".") else encoded) else ""


def _name_of(folder: Path) -> str:
    """Return the tenant or user of a folder. Raise OSError or ValueError if its name file is missing or damaged."""
    if "~" not in folder.name:
        return folder.name.partition("=")[2]
    return str(json.loads(folder.with_name(folder.name + _NAME_FILE).read_bytes()))
