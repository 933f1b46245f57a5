"""Outputs sealed under per-user keys, with line counts, an expiry time and a quota."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NEVER = sa.text(str(2**63 - 1))


def upgrade() -> None:
    op.create_table(
        "user_keys",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("master_id", sa.String(16), nullable=False),
        sa.Column("wrapped", sa.LargeBinary, nullable=False),
        sa.Column("used_bytes", sa.BigInteger, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "master_keys",
        sa.Column("master_id", sa.String(16), primary_key=True),
        sa.Column("create_us", sa.BigInteger, nullable=False),
    )
    for column in (
        sa.Column("size_lines", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        sa.Column("expire_us", sa.BigInteger, nullable=False, server_default=_NEVER),
        sa.Column("stored", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("key_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("seal", sa.LargeBinary, nullable=True),
    ):
        op.add_column("outputs", column)
    for name in ("first_break", "breaks", "line_start"):
        op.add_column("output_chunks", sa.Column(name, sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_index("ix_outputs_newest", "outputs", ["tenant", "subject", "create_us", "pointer"])
    op.create_index("ix_outputs_expiry", "outputs", ["expire_us"])
    _count_lines()


def _count_lines() -> None:
    """Count the lines of outputs stored before."""
    connection = op.get_bind()
    pointers = connection.scalars(sa.text("SELECT pointer FROM outputs")).all()
    for pointer in pointers:
        breaks, line_start, size = 0, 0, 0
        places = connection.execute(
            sa.text("SELECT first_char FROM output_chunks WHERE pointer = :pointer ORDER BY first_char"),
            {"pointer": pointer},
        ).all()
        for (first_char,) in places:
            which = {"pointer": pointer, "first_char": first_char}
            body = connection.execute(
                sa.text("SELECT body FROM output_chunks WHERE pointer = :pointer AND first_char = :first_char"), which
            ).scalar_one()
            text = bytes(body).decode("utf-8", "replace")
            connection.execute(
                sa.text(
                    "UPDATE output_chunks SET first_break = :first_break, breaks = :breaks, line_start = :line_start "
                    "WHERE pointer = :pointer AND first_char = :first_char"
                ),
                {**which, "first_break": breaks, "breaks": text.count("\n"), "line_start": line_start},
            )
            breaks, size = breaks + text.count("\n"), first_char + len(text)
            if "\n" in text:
                line_start = first_char + text.rindex("\n") + 1
        connection.execute(
            sa.text("UPDATE outputs SET size_lines = :lines WHERE pointer = :pointer"),
            {"lines": breaks + (line_start < size), "pointer": pointer},
        )
