"""The store: it reads and writes database rows for the rest of the package.

Its functions return plain values of the engine, never rows, and no other package writes SQL. Values
that a turn reads are kept in immutable snapshots, so a turn makes no query once they are in memory.
Every write drops or replaces the snapshots that it makes outdated. It also raises a number by which
other processes notice the change (`core/snapshots.py`). All packages here use `core`; `history`
also writes the memories and model calls of a turn; `erasing` uses all of them.
"""
