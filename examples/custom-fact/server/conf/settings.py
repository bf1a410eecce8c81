"""Settings of the game, with a fact of its own in every prompt."""

from evennia.settings_default import *

SERVERNAME = "mygame"
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]

# The facts of the package (speaker, relation, place), then the fact of this game.
EVENNIA_AI_CONTEXT_PROVIDERS = ["speaker", "relation", "place", "world.facts.weather"]

try:
    from server.conf.secret_settings import *
except ImportError:
    print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
