"""Non-player characters for Evennia whose every prompt can be inspected.

To install it, add "evennia_ai" to `INSTALLED_APPS` and add one command set. `PUBLIC` lists what a
game may import from here. Each name is imported when it is first used, for two reasons: a game's
settings import `database` before Django is ready, and the engine must run without Django and
Evennia.
"""

from importlib import import_module
from typing import Any

PUBLIC = {
    "AICmdSet": "evennia_ai.commands.cmdset",
    "AIMixin": "evennia_ai.typeclasses",
    "AINPC": "evennia_ai.typeclasses",
    "AIRoomMixin": "evennia_ai.typeclasses",
    "AISpeakerMixin": "evennia_ai.typeclasses",
    "ChatModel": "evennia_ai.services.llm.chat",
    "ChatReply": "evennia_ai.services.llm.chat",
    "ChatRequest": "evennia_ai.services.llm.chat",
    "ComposedTurn": "evennia_ai.formats.scenario",
    "EvenniaAIError": "evennia_ai.engine.errors",
    "Name": "evennia_ai.npc.tools.tool",
    "Refused": "evennia_ai.npc.tools.tool",
    "ScriptedModel": "evennia_ai.services.llm.clients.scripted",
    "Tool": "evennia_ai.npc.tools.tool",
    "ToolArguments": "evennia_ai.npc.tools.tool",
    "Use": "evennia_ai.npc.tools.tool",
    "composed_turns": "evennia_ai.formats.scenario",
    "database": "evennia_ai.services.settings.database",
    "happened": "evennia_ai.npc.senses.happenings",
    "person": "evennia_ai.npc.tools.targets",
    "read_scenario_file": "evennia_ai.formats.scenario",
    "run_scenario": "evennia_ai.formats.scenario",
    "shown_name": "evennia_ai.npc.tools.targets",
    "things": "evennia_ai.npc.tools.targets",
}
"""The names that a game may import from here, each with the module that defines it."""

__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'evennia_ai' has no attribute '{name}'")
    return getattr(import_module(PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
