"""Background work in the database: the queue, the workers, their proposals and their limits."""
