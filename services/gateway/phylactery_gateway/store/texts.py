"""What people wrote, from its receipt until the agent has it: sealed, and empty in every other state.

Functions of a connection: they run within the transaction that changes the state.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Media
from phylactery_gateway.store.sealing import SEALED, sealer_of
from phylactery_gateway.tables import media, messages

SEALED_NAME: Final = base64.b64encode(SEALED[: len(SEALED) // 3 * 3]).decode()
"""What a sealed name begins with."""


def seal_message(connection: Connection, message_id: str, text: str, passed_on: str) -> None:
    """Set what the person, and others, wrote in a message that waits."""
    values = {
        name: sealer_of(connection).seal(one.encode("utf-8", "replace"), message_place(name, message_id))
        for name, one in (("text", text), ("passed_on", passed_on))
    }
    connection.execute(sa.update(messages).where(messages.c.message_id == message_id).values(**values))


def open_message(connection: Connection, row: sa.Row[Any]) -> tuple[str, str]:
    """Return what the person, and others, wrote in a message that waits.

    Of a row from before it was stored who wrote it, everything counts as written by others.
    """
    text, passed_on = (
        (sealer_of(connection).open(one or b"", message_place(name, row.message_id)) or b"").decode()
        for name, one in (("text", row.text), ("passed_on", row.passed_on))
    )
    return ("", text) if row.passed_on is None else (text, passed_on)


def settle_messages(connection: Connection, which: Sequence[sa.ColumnElement[bool]], **values: Any) -> bool:
    """Change the state of messages that wait no more, and empty them; return True if there were any."""
    found = connection.execute(sa.select(messages.c.message_id).where(*which)).scalars().all()
    if found:
        of_them = messages.c.message_id.in_(found)
        connection.execute(sa.update(messages).where(of_them).values(text=b"", passed_on=b"", **values))
        connection.execute(sa.delete(media).where(media.c.message_id.in_(found)))
    return bool(found)


def add_file(connection: Connection, message_id: str, file: Media, now_us: int) -> None:
    """Add the file of a message that waits. Its name is the person's words, too."""
    media_id = new_id("med")
    connection.execute(
        sa.insert(media).values(
            media_id=media_id,
            message_id=message_id,
            reference=file.reference,
            kind=file.kind,
            mime=file.mime,
            sha256=file.sha256,
            name=seal_name(connection, media_id, file.name),
            create_us=now_us,
        )
    )


def files_of(connection: Connection, message_ids: Sequence[str]) -> dict[str, Media]:
    """Return the files of messages that wait, by the id of their message."""
    if not message_ids:
        return {}
    rows = connection.execute(sa.select(media).where(media.c.message_id.in_(message_ids))).all()
    return {
        row.message_id: Media(row.reference, row.kind, row.mime, row.sha256, _open_name(connection, row))
        for row in rows
    }


def seal_name(connection: Connection, media_id: str, name: str) -> str:
    """Return the name of a file as it is stored."""
    sealed = sealer_of(connection).seal(name.encode("utf-8", "replace"), f"media.name:{media_id}")
    return base64.b64encode(sealed).decode()


def _open_name(connection: Connection, row: sa.Row[Any]) -> str:
    try:
        sealed = base64.b64decode(row.name)
    except binascii.Error:
        return ""
    return (sealer_of(connection).open(sealed, f"media.name:{row.media_id}") or b"").decode()


def seal_body(connection: Connection, table: str, row_id: str, body: Mapping[str, Any]) -> bytes:
    """Return the body of a turn, or of a message to send, as it is stored."""
    return sealer_of(connection).seal(json.dumps(body).encode(), f"{table}.body:{row_id}")


def open_body(connection: Connection, table: str, row_id: str, sealed: bytes) -> dict[str, Any] | None:
    """Return a body, {} if it was emptied, None if it cannot be opened."""
    plain = sealer_of(connection).open(sealed, f"{table}.body:{row_id}")
    if plain is None:
        return None
    found: dict[str, Any] = json.loads(plain) if plain else {}
    return found


def message_place(column: str, message_id: str) -> str:
    """Return what a text of a message is sealed to."""
    return f"messages.{column}:{message_id}"
