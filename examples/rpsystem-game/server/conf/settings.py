"""Settings of a game with Evennia's roleplaying system, and evennia_ai."""

from evennia.settings_default import *

SERVERNAME = "mygame"
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]

# `card/spawn` makes NPCs of this class, with short descriptions like other characters.
EVENNIA_AI_NPC_TYPECLASS = "typeclasses.npcs.NPC"

try:
    from server.conf.secret_settings import *
except ImportError:
    print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
