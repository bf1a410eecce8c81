"""Settings of the game: Evennia's defaults, and evennia_ai."""

from evennia.settings_default import *

SERVERNAME = "mygame"
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]
EVENNIA_AI_DISCLOSURE = True

try:
    from server.conf.secret_settings import *
except ImportError:
    print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
