"""The store: database rows in, plain values out. No other package writes SQL.

Functions return values of the engine, never rows. Values that a turn reads are kept in immutable
snapshots, so a warm turn makes no query. Every write drops or replaces the snapshots that it
outdates, and raises a number by which other processes notice it (`core/snapshots.py`). All packages
here use `core`; `history` also writes a turn's memories and calls; `erasing` uses all of them.
"""
