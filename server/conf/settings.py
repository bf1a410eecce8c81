"""Settings of the demo game: Evennia's defaults, adapted to this repository.

Your own game needs only the line under "Apps". Environment variables choose the ports
(`server/ports.py`). Secrets are in `secret_settings.py`, which Evennia creates and git ignores.
"""

import os
from pathlib import Path

from evennia.settings_default import *

from evennia_ai import database
from server.logins import read_logins
from server.ports import HOST, Ports

SERVERNAME = "Ebbwick"
GAME_SLOGAN = "People you can talk to, prompts you can read"

# Apps
INSTALLED_APPS = [*INSTALLED_APPS, "evennia_ai"]

# With a write-ahead log, reading does not wait for writing, so what NPCs say is written in a
# thread.
DATABASES["default"]["OPTIONS"] = {"init_command": "PRAGMA journal_mode=WAL"}
# To use another database, set its address, such as postgres://user:password@localhost:5432/name
# (docs/run/deploying.md).
if os.environ.get("EVENNIA_AI_DATABASE"):
    DATABASES = database(os.environ["EVENNIA_AI_DATABASE"])

# With `make play WORKERS=2`, workers do what NPCs do besides speaking. They form memories of every
# exchange; a function of the demo replaces the model that decides what to note.
if os.environ.get("EVENNIA_AI_DEMO_WORKERS"):
    INSTALLED_APPS = [*INSTALLED_APPS, "procrastinate.contrib.django"]
    EVENNIA_AI_WORKERS = {"queue": "procrastinate"}
    EVENNIA_AI_MEMORY = {"after_messages": 2}
    EVENNIA_AI_PROFILES = {"notes": {"client": "scripted", "script": "world.demo_notes.notes"}}
    EVENNIA_AI_MODEL_ROLES = {"summariser": "notes"}

# Network: the game is reachable from this machine only.
_ports = Ports.from_environment()
TELNET_PORTS = [_ports.telnet]
TELNET_INTERFACES = [HOST]
WEBSERVER_PORTS = [(_ports.web, _ports.web_internal)]
WEBSERVER_INTERFACES = [HOST]
WEBSOCKET_CLIENT_PORT = _ports.websocket
WEBSOCKET_CLIENT_INTERFACE = HOST
AMP_HOST = HOST
AMP_PORT = _ports.amp
AMP_INTERFACE = HOST
# If a packet is cut after certain bytes, Evennia takes a telnet client for a browser and starts
# again.
AMP_SERVER_PROTOCOL_CLASS = "evennia_ai.web.amp.SteadyPortal"
AMP_CLIENT_PROTOCOL_CLASS = "evennia_ai.web.amp.SteadyServer"
ALLOWED_HOSTS = ["localhost", HOST]
# The web client accepts only pages of this game. Pages of other sites, open in a player's browser,
# can neither read nor type.
WEBSOCKET_PROTOCOL_CLASS = "evennia_ai.web.portal.OwnOriginsWebSocket"
AJAX_CLIENT_CLASS = "evennia_ai.web.portal.OwnOriginsAjax"
MIDDLEWARE = ["evennia_ai.web.origins.OwnOriginsMiddleware", *MIDDLEWARE]
REST_API_ENABLED = True
REST_FRAMEWORK = {
    **REST_FRAMEWORK,
    # The REST API accepts no password with requests, because nothing here limits how often somebody
    # guesses.
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    # The REST API has no browsable pages, because those of the version that Evennia requires run
    # scripts (CVE-2024-21520).
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
}
# A form on a web page cannot type at the telnet port either.
TELNET_PROTOCOL_CLASS = "evennia_ai.web.telnet.TelnetWithoutHttp"
# Lines of clients are limited in length and have no link markup. Evennia removes link markup in
# time that grows with the cube of the length: with its default of 6,000 characters, one line can
# block the game for seconds.
PORTAL_SESSION_HANDLER_CLASS = "evennia_ai.npc.typed_lines.BoundedSessions"
MAX_CHAR_LIMIT = 1500

# If a command fails, the player sees one sentence. Evennia's default is to show the traceback.
IN_GAME_ERRORS = False

# The web client gets the pane that shows the mind of an NPC (`ai/watch`).
TEMPLATES[0]["DIRS"].insert(0, Path(__file__).with_name("templates"))

# Layout: there is no `typeclasses` and no `web` folder in this repository.
BASE_ACCOUNT_TYPECLASS = "evennia.accounts.accounts.DefaultAccount"
BASE_GUEST_TYPECLASS = "evennia.accounts.accounts.DefaultGuest"
BASE_OBJECT_TYPECLASS = "evennia.objects.objects.DefaultObject"
BASE_CHARACTER_TYPECLASS = "evennia.objects.objects.DefaultCharacter"
BASE_ROOM_TYPECLASS = "evennia.objects.objects.DefaultRoom"
BASE_EXIT_TYPECLASS = "evennia.objects.objects.DefaultExit"
BASE_CHANNEL_TYPECLASS = "evennia.comms.comms.DefaultChannel"
BASE_SCRIPT_TYPECLASS = "evennia.scripts.scripts.DefaultScript"
TYPECLASS_PATHS = [*TYPECLASS_PATHS, "evennia_ai", "evennia_ai.npc", "world"]
ROOT_URLCONF = "server.conf.web_urls"
STATICFILES_DIRS = []

# Modules of this game that Evennia loads. Modules that would be empty are left out.
SERVER_SERVICES_PLUGIN_MODULES = []
# The first module sends data at once, instead of waiting for the acknowledgement of the packet
# before. The second one refuses web requests that are too large before they are stored.
PORTAL_SERVICES_PLUGIN_MODULES = ["evennia_ai.web.nodelay", "evennia_ai.web.bodies"]
LOCK_FUNC_MODULES = ("evennia.locks.lockfuncs", "world.lockfuncs")
INPUT_FUNC_MODULES = ["evennia.server.inputfuncs"]
FUNCPARSER_OUTGOING_MESSAGES_MODULES = ["evennia.utils.funcparser"]
FUNCPARSER_PROTOTYPE_PARSING_MODULES = ["evennia.prototypes.protfuncs"]
AT_INITIAL_SETUP_HOOK_MODULE = ""

# evennia_ai
EVENNIA_AI_DISCLOSURE = True
EVENNIA_AI_FILTER = {}  # world/word_filter.py is an example (docs/run/privacy.md)
EVENNIA_AI_CARD_FOLDER = "world/demo/cards"
EVENNIA_AI_PRESET_FOLDER = "world/demo/presets"
EVENNIA_AI_KNOWLEDGE_FOLDER = "world/demo/knowledge"
EVENNIA_AI_KEPT_FOLDER = "world/demo/kept"

# Demo
DEMO_WORLD = True
"""Build the harbour of `world/build_demo.py` when the server starts."""
DEMO_EVENING = True
"""Let the evening of `world/evening.py` pass while somebody plays, and let people tick."""
EVENNIA_AI_LORE_FACTS = ["world.evening.lore_facts"]
DEMO_PASSWORDS = read_logins(Path(__file__).parents[2])
"""The logins of the demo accounts. None until they are made."""

try:
    from server.conf.secret_settings import *
except ImportError:
    if os.environ.get("DJANGO_SETTINGS_MODULE") != "server.conf.test_settings":
        print("server/conf/secret_settings.py is missing; `evennia --initmissing` makes it.")
