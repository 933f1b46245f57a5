"""Initial schema: decisions, approvals, redemptions, outcomes and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    _audit()
    _decisions()
    _approvals()
    _redemptions()


def _audit() -> None:
    op.create_table(
        "audit_logs",
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("frontier", sa.LargeBinary, nullable=False),
        sa.Column("signed_size", sa.BigInteger, nullable=False),
        sa.Column("data_key_id", sa.String(32), nullable=False),
    )
    op.create_table(
        "audit_entries",
        sa.Column("log", sa.String(128), sa.ForeignKey("audit_logs.name"), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("leaf", sa.LargeBinary, nullable=False),
        sa.Column("record", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "audit_values",
        sa.Column("log", sa.String(128), primary_key=True),
        sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "audit_checkpoints",
        sa.Column("log", sa.String(128), sa.ForeignKey("audit_logs.name"), primary_key=True),
        sa.Column("size", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("note", sa.LargeBinary, nullable=False),
        sa.Column("sign_us", sa.BigInteger, nullable=False),
    )


def _decisions() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("subject", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("counted_approval_id", sa.String(128), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("fingerprint", sa.String(80), nullable=False),
        sa.Column("decision", sa.String(16), nullable=False),
        sa.Column("reasons", sa.LargeBinary, nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("tool_version", sa.String(80), nullable=False),
        sa.Column("args_hash", sa.String(80), nullable=False),
        sa.Column("policy_ids", sa.LargeBinary, nullable=False),
        sa.Column("bundle_revision", sa.BigInteger, nullable=False),
        sa.Column("risk", sa.String(16), nullable=False),
        sa.Column("approval_id", sa.String(128), nullable=False),
        sa.Column("permit_id", sa.String(128), nullable=False),
        sa.Column("permit_us", sa.BigInteger, nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("audit_index", sa.BigInteger, nullable=False),
        sa.UniqueConstraint(
            "tenant", "subject", "run_id", "tool_call_id", "counted_approval_id", name="decisions_one_per_call"
        ),
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("approval_class", sa.String(128), nullable=False),
        sa.Column("who", sa.String(16), nullable=False),
        sa.Column("approvers", sa.Integer, nullable=False),
        sa.Column("tool", sa.String(128), nullable=False),
        sa.Column("risk", sa.String(16), nullable=False),
        sa.Column("args_hash", sa.String(80), nullable=False),
        sa.Column("thread_id", sa.String(128), nullable=False),
        sa.Column("run_id", sa.String(128), nullable=False),
        sa.Column("tool_call_id", sa.String(128), nullable=False),
        sa.Column("requester", sa.String(128), nullable=False),
        sa.Column("create_us", sa.BigInteger, nullable=False),
        sa.Column("expire_us", sa.BigInteger, nullable=False),
        sa.Column("decision_id", sa.String(128), nullable=False),
        sa.Column("policy_ids", sa.LargeBinary, nullable=False),
        sa.Column("decide_us", sa.BigInteger, nullable=False),
        sa.Column("decided_by", sa.String(128), nullable=False),
        sa.Column("closed_reason", sa.String(32), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
    )
    op.create_index("approvals_by_expiry", "approvals", ["tenant", "state", "expire_us"])
    op.create_index("approvals_by_requester", "approvals", ["tenant", "requester", "state"])
    op.create_index("approvals_by_tenant", "approvals", ["tenant", "create_us", "id"])
    op.create_table(
        "approval_votes",
        sa.Column("approval_id", sa.String(128), sa.ForeignKey("approvals.id"), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("vote_us", sa.BigInteger, nullable=False),
    )


def _redemptions() -> None:
    op.create_table(
        "redemptions",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("run_id", sa.String(128), primary_key=True),
        sa.Column("tool_call_id", sa.String(128), primary_key=True),
        sa.Column("execution_id", sa.String(128), nullable=False),
        sa.Column("decision_id", sa.String(128), sa.ForeignKey("decisions.id"), nullable=False),
        sa.Column("receipt_claims", sa.LargeBinary, nullable=False),
        sa.Column("redeem_us", sa.BigInteger, nullable=False),
        sa.Column("audit_index", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("tenant", "subject", "execution_id", name="redemptions_one_per_execution"),
    )
    op.create_table(
        "outcomes",
        sa.Column("tenant", sa.String(128), primary_key=True),
        sa.Column("subject", sa.String(128), primary_key=True),
        sa.Column("execution_id", sa.String(128), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("result_hash", sa.String(80), nullable=False),
        sa.Column("result_size", sa.BigInteger, nullable=False),
        sa.Column("error_code", sa.String(64), nullable=False),
        sa.Column("report_us", sa.BigInteger, nullable=False),
        sa.Column("audit_index", sa.BigInteger, nullable=False),
    )
