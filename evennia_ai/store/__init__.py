"""The store: database rows in, plain values out. The only room that writes SQL.

Every function returns values of the engine, never rows. What a turn reads is kept in
immutable snapshots, so a warm turn makes no query; every write drops or replaces what it made old,
and raises a number by which other processes notice (`core/snapshots.py`). All stand on `core`;
`history` writes what turns change in memories and calls with them, and `erasing` knows them all.
"""
