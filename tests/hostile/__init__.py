"""Attacks on a running game, over raw telnet and websocket.

To add an attack, open the file of its subject (`test_<subject>.py`) and add a row to its table,
with a name that says what is tried. Then run that file with `-rP`. A row has the attacker, what is
typed or what the model answers, and what must hold if that differs from row to row. The one test of
each file plays the whole table in its own room. It collects findings: a line for each thing that an
attacker got. What must hold is checked from outside: the bytes on other people's screens, the
requests that reached the model's server, the logs, the memory of the server, and what the game's
own commands show to a builder.

`harbour.py` is the attacked game with its people; `audit.py` counts attacks and collects findings.
One game runs for the whole folder. So a row must undo what it made, and a subject must not use
rooms, NPCs or players of another one. If you find a fault, first add a row that fails, then fix the
cause.
"""
