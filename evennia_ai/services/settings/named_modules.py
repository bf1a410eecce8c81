"""The names of our modules that are added to Evennia's settings.

Nothing is imported here, because all processes read these names.
"""

from typing import Final

SERVICE: Final = "evennia_ai.npc.service"
"""Runs code when the server starts and stops (`AT_SERVER_STARTSTOP_MODULE`)."""
NODELAY: Final = "evennia_ai.web.nodelay"
"""Makes network connections send without delay.

Used in `SERVER_SERVICES_PLUGIN_MODULES` and `PORTAL_SERVICES_PLUGIN_MODULES`.
"""
BODIES: Final = "evennia_ai.web.bodies"
"""Limits the size of web requests.

Used in `SERVER_SERVICES_PLUGIN_MODULES` and `PORTAL_SERVICES_PLUGIN_MODULES`.
"""
INPUT_FUNCTIONS: Final = "evennia_ai.npc.input_functions"
"""Answers messages of web clients that no input function handles (`INPUT_FUNC_MODULES`)."""
