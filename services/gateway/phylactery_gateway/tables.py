"""The tables, as of the newest migration.

Times are microseconds since the epoch. What people write and are told is bytes, sealed (``store.sealing``), and empty
once it is not needed any more.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

metadata = sa.MetaData()

NEVER_US: Final = 2**62
"""A time that does not come."""

_ID = sa.String(64)
_NAME = sa.String(32)
_EXTERNAL = sa.String(1_024)

users = sa.Table(
    "users",
    metadata,
    sa.Column("user_id", _ID, primary_key=True),
    sa.Column("channel", _NAME, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("merged_into", _ID, nullable=False, server_default=""),
    sa.Column("renamed", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("renamed_told", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("seen_us", sa.BigInteger, nullable=False, server_default="0"),  # when they last wrote
)
identities = sa.Table(
    "identities",
    metadata,
    sa.Column("channel", _NAME, primary_key=True),
    sa.Column("kind", _NAME, primary_key=True),
    sa.Column("value", _EXTERNAL, primary_key=True),
    sa.Column("user_id", _ID, nullable=False),
    sa.Column("current", sa.Boolean, nullable=False),
    sa.Column("written", _EXTERNAL, nullable=False, server_default=""),  # the channel's spelling; '' if it is the value
)
former = sa.Table(
    "former",  # who had a phone number before somebody else: by it they are erased, and known by nothing
    metadata,
    sa.Column("channel", _NAME, primary_key=True),
    sa.Column("kind", _NAME, primary_key=True),
    sa.Column("value", _EXTERNAL, primary_key=True),
    sa.Column("user_id", _ID, primary_key=True),
)
echoes = sa.Table(
    "echoes",  # until when the business itself has a conversation with whoever has an identity, who did not write yet
    metadata,
    sa.Column("channel", _NAME, primary_key=True),
    sa.Column("account", _EXTERNAL, primary_key=True),
    sa.Column("kind", _NAME, primary_key=True),
    sa.Column("value", _EXTERNAL, primary_key=True),
    sa.Column("until_us", sa.BigInteger, nullable=False),
)
conversations = sa.Table(
    "conversations",
    metadata,
    sa.Column("conversation_id", _ID, primary_key=True),
    sa.Column("user_id", _ID, nullable=False),
    sa.Column("channel", _NAME, nullable=False),
    sa.Column("account", _EXTERNAL, nullable=False),
    sa.Column("language", _NAME, nullable=False),
    sa.Column("last_position", sa.BigInteger, nullable=False),
    sa.Column("last_inbound_us", sa.BigInteger, nullable=False),
    sa.Column("work_us", sa.BigInteger, nullable=False),
    sa.Column("turn_owner", _ID, nullable=False),
    sa.Column("turn_until_us", sa.BigInteger, nullable=False),
    sa.Column("event_after", sa.BigInteger, nullable=False),
    sa.Column("check_us", sa.BigInteger, nullable=False),
    sa.Column("human_until_us", sa.BigInteger, nullable=False),
    sa.Column("pair_us", sa.BigInteger, nullable=False),
    sa.Column("template_us", sa.BigInteger, nullable=False),
    sa.Column("opted_out", sa.Boolean, nullable=False),
    sa.Column("claimed", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("thread_us", sa.BigInteger, nullable=False, server_default="0"),
)
inbox = sa.Table(
    "inbox",
    metadata,
    sa.Column("channel", _NAME, primary_key=True),
    sa.Column("account", _EXTERNAL, primary_key=True),
    sa.Column("element_id", _EXTERNAL, primary_key=True),
    sa.Column("kind", sa.String(64), nullable=False),
    sa.Column("receive_us", sa.BigInteger, nullable=False),
)
backlog = sa.Table(
    "backlog",
    metadata,
    sa.Column("webhook_id", _ID, primary_key=True),
    sa.Column("channel", _NAME, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("done", sa.BigInteger, nullable=False),
    sa.Column("receive_us", sa.BigInteger, nullable=False),
    sa.Column("until_us", sa.BigInteger, nullable=False),
)
messages = sa.Table(
    "messages",
    metadata,
    sa.Column("message_id", _ID, primary_key=True),
    sa.Column("conversation_id", _ID, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("external_id", _EXTERNAL, nullable=False),
    sa.Column("kind", _NAME, nullable=False),
    sa.Column("text", sa.LargeBinary, nullable=False),
    sa.Column("option", _EXTERNAL, nullable=False),
    sa.Column("quotes", _EXTERNAL, nullable=False, server_default=""),
    sa.Column("sent_us", sa.BigInteger, nullable=False),
    sa.Column("receive_us", sa.BigInteger, nullable=False),
    sa.Column("state", _NAME, nullable=False),
    sa.Column("turn_id", sa.String(128), nullable=True),
    sa.Column("passed_on", sa.LargeBinary, nullable=True),  # null in a row from before it was known who wrote the text
)
turns = sa.Table(
    "turns",
    metadata,
    sa.Column("turn_id", sa.String(128), primary_key=True),
    sa.Column("conversation_id", _ID, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("state", _NAME, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("approval_id", sa.String(128), nullable=False, server_default=""),  # the one that it answers
)
outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("outbox_id", _ID, primary_key=True),
    sa.Column("conversation_id", _ID, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("source", sa.String(1_200), nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("state", _NAME, nullable=False),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("next_us", sa.BigInteger, nullable=False),
    sa.Column("external_id", _EXTERNAL, nullable=False),
    sa.Column("delivery", sa.Integer, nullable=False),
    sa.Column("error_code", sa.String(64), nullable=False),
    sa.Column("create_us", sa.BigInteger, nullable=False),
    sa.Column("sent_us", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("emptied", sa.Boolean, nullable=False, server_default=sa.false()),  # its buttons alone are left
)
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("channel", _NAME, primary_key=True),
    sa.Column("account", _EXTERNAL, primary_key=True),
    sa.Column("rate_us", sa.BigInteger, nullable=False),
    sa.Column("paused_until_us", sa.BigInteger, nullable=False),
    sa.Column("pause_code", sa.String(64), nullable=False),
    sa.Column("templates_from_us", sa.BigInteger, nullable=False, server_default="0"),
)
media = sa.Table(
    "media",
    metadata,
    sa.Column("media_id", _ID, primary_key=True),
    sa.Column("message_id", _ID, nullable=False),
    sa.Column("reference", _EXTERNAL, nullable=False),
    sa.Column("kind", _NAME, nullable=False),
    sa.Column("mime", sa.String(128), nullable=False),
    sa.Column("sha256", sa.String(128), nullable=False),
    sa.Column("name", sa.Text, nullable=False),  # sealed, in base64
    sa.Column("create_us", sa.BigInteger, nullable=False),
)
marks = sa.Table(
    "marks",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("value", sa.String(128), nullable=False),
)
