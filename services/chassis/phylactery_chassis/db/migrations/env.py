"""What Alembic runs: the revisions, on the connection and in the transaction upgrade() opened."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=False,  # upgrade() owns the transaction
)
context.run_migrations()
