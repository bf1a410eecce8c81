"""Templates: their macros, what logic may hold and do, and how they are compiled and filled."""
