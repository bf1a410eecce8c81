"""A connection that is made anew once it is gone.

Django looks whether a connection still lives where a web request begins or ends. A game's own
thread has no requests: after PostgreSQL was started again it would be refused for ever. So a
connection that is known to be gone is left, and the next statement opens another one. Inside a
transaction it is not: what was begun is lost, and whoever began it has to be told.
"""

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection of one thread to PostgreSQL."""

    def ensure_connection(self) -> None:
        """Open a connection where there is none, or none any more."""
        gone = self.connection is not None and self.connection.closed
        if gone and not self.in_atomic_block:
            self.close()
        super().ensure_connection()
