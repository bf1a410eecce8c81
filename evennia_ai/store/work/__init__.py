"""Background work in the database: the queue, what workers offer, may take, and who they are."""
