"""The gateway's tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.String(64)
_NAME = sa.String(32)
_EXTERNAL = sa.String(1_024)


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("user_id", _ID, primary_key=True),
        sa.Column("channel", _NAME, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "identities",
        sa.Column("channel", _NAME, primary_key=True),
        sa.Column("kind", _NAME, primary_key=True),
        sa.Column("value", _EXTERNAL, primary_key=True),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("current", sa.Boolean, nullable=False),
    )
    op.create_index("ix_identities_user", "identities", ["user_id"])
    op.create_table(
        "conversations",
        sa.Column("conversation_id", _ID, primary_key=True),
        sa.Column("user_id", _ID, nullable=False),
        sa.Column("channel", _NAME, nullable=False),
        sa.Column("account", _EXTERNAL, nullable=False),
        sa.Column("language", _NAME, nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in ("last_position", "last_inbound_us", "work_us")),
        sa.Column("turn_owner", _ID, nullable=False),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("turn_until_us", "event_after", "check_us", "human_until_us", "pair_us", "template_us")
        ),
        sa.Column("opted_out", sa.Boolean, nullable=False),
    )
    op.create_index("ix_conversations_of_user", "conversations", ["user_id", "account"], unique=True)
    op.create_index("ix_conversations_work", "conversations", ["work_us"])
    op.create_index("ix_conversations_check", "conversations", ["check_us"])
    op.create_table(
        "inbox",
        sa.Column("channel", _NAME, primary_key=True),
        sa.Column("account", _EXTERNAL, primary_key=True),
        sa.Column("element_id", _EXTERNAL, primary_key=True),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("receive_us", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_inbox_age", "inbox", ["receive_us"])
    _create_messages()
    _create_outbox()


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("message_id", _ID, primary_key=True),
        sa.Column("conversation_id", _ID, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("external_id", _EXTERNAL, nullable=False),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("text", sa.LargeBinary, nullable=False),
        sa.Column("option", _EXTERNAL, nullable=False),
        sa.Column("sent_us", sa.BigInteger, nullable=False),
        sa.Column("receive_us", sa.BigInteger, nullable=False),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("turn_id", sa.String(128), nullable=True),
    )
    op.create_index("ix_messages_waiting", "messages", ["conversation_id", "state", "position"])
    op.create_index("ix_messages_external", "messages", ["conversation_id", "external_id"])
    op.create_index("ix_messages_age", "messages", ["receive_us"])
    op.create_table(
        "turns",
        sa.Column("turn_id", sa.String(128), primary_key=True),
        sa.Column("conversation_id", _ID, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("state", _NAME, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_turns_open", "turns", ["conversation_id", "state"])
    op.create_index("ix_turns_age", "turns", ["create_us"])
    op.create_table(
        "media",
        sa.Column("media_id", _ID, primary_key=True),
        sa.Column("message_id", _ID, nullable=False),
        sa.Column("reference", _EXTERNAL, nullable=False),
        sa.Column("kind", _NAME, nullable=False),
        sa.Column("mime", sa.String(128), nullable=False),
        sa.Column("sha256", sa.String(128), nullable=False),
        sa.Column("name", _EXTERNAL, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_media_message", "media", ["message_id"])
    op.create_index("ix_media_age", "media", ["create_us"])


def _create_outbox() -> None:
    op.create_table(
        "outbox",
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
    )
    op.create_index("ix_outbox_source", "outbox", ["conversation_id", "source"], unique=True)
    op.create_index("ix_outbox_due", "outbox", ["state", "next_us"])
    op.create_index("ix_outbox_order", "outbox", ["conversation_id", "position"])
    op.create_index("ix_outbox_external", "outbox", ["external_id"])
    op.create_index("ix_outbox_age", "outbox", ["create_us"])
    op.create_table(
        "accounts",
        sa.Column("channel", _NAME, primary_key=True),
        sa.Column("account", _EXTERNAL, primary_key=True),
        sa.Column("rate_us", sa.BigInteger, nullable=False),
        sa.Column("paused_until_us", sa.BigInteger, nullable=False),
        sa.Column("pause_code", sa.String(64), nullable=False),
    )
