"""Attacks on a running game, over raw telnet and websocket.

How to add an attack: open the file of its subject (`test_<subject>.py`), add a row to its table
with a name that says what is tried, and run that file with `-rP`. A row is data: who types it, what
is typed, or what the model answers, and what must hold where that differs from row to row. Each
file has one test, which plays its whole table in a room of its own and collects findings, a line
each: what an attacker got. What must hold is looked at from outside: the bytes on other people's
screens, the requests that the model's server received, the logs, the memory of the server, and what
the game's own commands show to a builder.

`harbour.py` is the game they are played in and the people there, `audit.py` counts and collects.
One game runs for the whole folder, so a row undoes what it made, and a subject uses no room, NPC or
player of another's. A fault that is found becomes a row first, and is mended at its cause then.
"""
