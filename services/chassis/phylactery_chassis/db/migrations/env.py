"""The Alembic environment: runs the revisions on the connection and in the transaction that upgrade() opened."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=False,  # upgrade() controls the transaction
)
context.run_migrations()
