"""Settings of the game, with a tool of its own and a script that answers as the model."""

from evennia.settings_default import *

SERVERNAME = "mygame"
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]

EVENNIA_AI_TOOLS = ["world.tools.RingBell"]

# A script answers in place of a model. With a model of yours, take this out.
EVENNIA_AI_PROFILES = {"default": {"client": "scripted", "script": "world/bell.yaml"}}

try:
    from server.conf.secret_settings import *
except ImportError:
    print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
