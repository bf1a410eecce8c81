"""The room where NPCs live: Evennia events come in, turns run, safe speech goes out.

Typeclasses and hooks only translate (hook -> Event, reply -> msg); what a prompt holds is decided
below, in `compose`. Nothing here imports Evennia's typeclasses before the game is set up: import
from the modules, this file stays empty.
"""
