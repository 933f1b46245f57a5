"""Phone numbers in the one form of all their spellings, and people who are one person by it.

Of the people who had two spellings of a number, whoever wrote last goes on, or whoever has a business-scoped id, if
they wrote within 90 days of it: the others of these 90 days, and those who never wrote, are merged into them. Whoever
was away for longer may be somebody else: they lose the number, and are kept to be erased by it.
"""

from __future__ import annotations

import re
from collections import defaultdict

import phonenumbers
import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_NAME = sa.String(32)
_EXTERNAL = sa.String(1_024)
_AWAY_US = 90 * 24 * 3_600 * 1_000_000
_SPELLED = re.compile(r"\+?[0-9().\-/]+")
_UNSEEN = re.compile(r"[\s\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
_SAME = (
    (re.compile(r"521(\d{10})"), r"52\1"),
    (re.compile(r"549(\d{10})"), r"54\1"),
    (re.compile(r"55([1-9]\d)([6-9]\d{7})"), r"55\g<1>9\2"),
)


def _normal(text: str) -> str | None:
    """Return the one form of a number's spellings, as they were read when this revision was written."""
    spelled = _UNSEEN.sub("", text)
    if not text.isascii():
        spelled = spelled.replace("\u2011", "-").replace("\u2013", "-")
    if not _SPELLED.fullmatch(spelled):
        return None
    international = re.sub(r"^\+?(?:00)?", "", spelled)
    digits = re.sub(r"\D", "", international)
    if not 7 <= len(digits) <= 20 or digits.startswith("0"):  # noqa: PLR2004 - the digits of a number with its country
        return None
    try:
        read = phonenumbers.parse(f"+{international}", None)
    except phonenumbers.NumberParseException:
        return digits
    digits = f"{read.country_code}{phonenumbers.national_significant_number(read)}"
    for form, one in _SAME:
        digits = form.sub(one, digits) if form.fullmatch(digits) else digits
    return digits


def upgrade() -> None:
    op.add_column("users", sa.Column("seen_us", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("identities", sa.Column("written", _EXTERNAL, nullable=False, server_default=""))
    op.create_table(
        "former",
        sa.Column("channel", _NAME, primary_key=True),
        sa.Column("kind", _NAME, primary_key=True),
        sa.Column("value", _EXTERNAL, primary_key=True),
        sa.Column("user_id", sa.String(64), primary_key=True),
    )
    op.create_index("ix_former_user", "former", ["user_id"])
    op.create_table(
        "echoes",
        sa.Column("channel", _NAME, primary_key=True),
        sa.Column("account", _EXTERNAL, primary_key=True),
        sa.Column("kind", _NAME, primary_key=True),
        sa.Column("value", _EXTERNAL, primary_key=True),
        sa.Column("until_us", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_echoes_until", "echoes", ["until_us"])
    connection = op.get_bind()
    # a window that the channel says is closed has last_inbound_us 0, so the messages count besides
    connection.execute(
        sa.text(
            "UPDATE users SET seen_us = COALESCE((SELECT MAX(c.last_inbound_us) FROM conversations c"
            " WHERE c.user_id = users.user_id), 0)"
        )
    )
    connection.execute(
        sa.text(
            "UPDATE users SET seen_us = COALESCE((SELECT MAX(m.receive_us) FROM messages m JOIN conversations c"
            " ON c.conversation_id = m.conversation_id WHERE c.user_id = users.user_id AND m.receive_us >"
            " users.seen_us), seen_us)"
        )
    )
    _one_form(connection)
    connection.execute(sa.text("UPDATE users SET seen_us = create_us WHERE seen_us = 0"))


def _one_form(connection: sa.Connection) -> None:
    people = {
        row.user_id: row
        for row in connection.execute(
            sa.text(
                "SELECT u.user_id, u.seen_us, EXISTS (SELECT 1 FROM identities i WHERE i.user_id = u.user_id AND"
                " i.kind <> 'phone' AND i.current) AS named FROM users u"
            )
        )
    }
    held = defaultdict(list)
    for row in connection.execute(sa.text("SELECT channel, value, user_id FROM identities WHERE kind = 'phone'")):
        held[row.channel, _normal(row.value) or row.value].append((row.user_id, row.value))
    for (channel, form), holders in held.items():
        if [value for _, value in holders] == [form]:
            continue
        holders.sort(key=lambda one: people[one[0]].seen_us, reverse=True)
        since = people[holders[0][0]].seen_us - _AWAY_US
        named = [one for one in holders if people[one[0]].named and people[one[0]].seen_us >= since]
        user_id, written = (named or holders)[0]
        for other, value in holders:
            gone = {"channel": channel, "value": value}
            connection.execute(
                sa.text("DELETE FROM identities WHERE channel = :channel AND kind = 'phone' AND value = :value"), gone
            )
            if other == user_id:
                continue
            if not people[other].named and (people[other].seen_us == 0 or people[other].seen_us >= since):
                _merge(connection, other, user_id)
            else:
                connection.execute(
                    sa.text(
                        "INSERT INTO former (channel, kind, value, user_id) VALUES (:channel, 'phone', :form, :id)"
                    ),
                    {"channel": channel, "form": form, "id": other},
                )
        connection.execute(
            sa.text(
                "INSERT INTO identities (channel, kind, value, user_id, current, written)"
                " VALUES (:channel, 'phone', :form, :id, :yes, :written)"
            ),
            {"channel": channel, "form": form, "id": user_id, "yes": True, "written": written},
        )


def _merge(connection: sa.Connection, user_id: str, into: str) -> None:
    """Make somebody one person with another; what was said stays in their conversation, and a colleague keeps it."""
    names = {"id": user_id, "into": into}
    for statement in (
        "UPDATE identities SET user_id = :into, current = :no WHERE user_id = :id",
        "UPDATE users SET merged_into = :into WHERE user_id = :id OR merged_into = :id",
        """UPDATE users SET seen_us = (SELECT MAX(u.seen_us) FROM users u WHERE u.user_id IN (:id, :into))
           WHERE user_id = :into""",
        """UPDATE conversations SET human_until_us = (SELECT MAX(c.human_until_us) FROM conversations c
           WHERE c.account = conversations.account AND c.user_id IN (:id, :into)) WHERE user_id IN (:id, :into)""",
    ):
        given = {**names, "no": False}
        connection.execute(sa.text(statement), {one: given[one] for one in given if f":{one}" in statement})
