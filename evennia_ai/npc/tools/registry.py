"""The registry of tools: the shipped ones, and those that the game names in EVENNIA_AI_TOOLS.

A tool that cannot be used is skipped. Builders can read why, and the server logs it as an error
when it starts. A tool of the game needs a name of its own; it cannot replace a shipped one. An NPC
has no tools until a builder chooses some for it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import isabstract
from typing import Any, Final

from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.npc.npc_settings import change_settings, settings_of
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.tools.items import Drop, Give, Look, Move, Take, UseItem, Write
from evennia_ai.npc.tools.knowledge import KnowledgeBaseSearch
from evennia_ai.npc.tools.remembering import ErrandResult, Recall, Remember
from evennia_ai.npc.tools.speaking import EndConversation, Pose, Say, Whisper
from evennia_ai.npc.tools.tool import Tool, ToolArguments, schema_of
from evennia_ai.npc.tools.toolbox import Registered, Toolbox
from evennia_ai.services.settings.conf import conf

SHIPPED: Final[tuple[type[Tool], ...]] = (
    Say,
    Whisper,
    Pose,
    Look,
    Move,
    Give,
    Take,
    Drop,
    UseItem,
    Write,
    Remember,
    Recall,
    EndConversation,
    ErrandResult,
    KnowledgeBaseSearch,
)

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,47}")
_MAX_DESCRIPTION: Final = 1000


class ToolError(EvenniaAIError):
    """The error for a class in EVENNIA_AI_TOOLS that cannot be used as a tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """All usable tools by name, and the problems of the tools that were skipped."""

    tools: Mapping[str, Registered]
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def registry() -> Registry:
    """Return the registry of this game. It stays the same while the server runs."""
    return registry_of(conf().tools)


def registry_of(paths: tuple[str, ...]) -> Registry:
    """Return a registry of the shipped tools and the tools with these dotted paths."""
    tools = {one.tool.name: one for one in map(register_tool, SHIPPED)}
    problems: list[str] = []
    for path in paths:
        try:
            one = register_tool(_class_at(path))
            _refuse_double(one, tools)
        except ToolError as error:
            problems.append(f"{path}: {error}")
        else:
            tools[one.tool.name] = one
    return Registry(tools=tools, problems=tuple(problems))


def register_tool(made: type[Tool]) -> Registered:
    """Check a class of tools and return its only instance with its description.

    Raises:
        ToolError: The class cannot be used as a tool.
    """
    name = getattr(made, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolError(
            f"its name {name!r} is not allowed: 1 to 48 of a-z, 0-9 and _, beginning with a letter"
        )
    description = getattr(made, "description", None)
    if not isinstance(description, str) or not 0 < len(description.strip()) <= _MAX_DESCRIPTION:
        raise ToolError(f"its description must be 1 to {_MAX_DESCRIPTION} characters of text")
    if made.waits and made.later:
        raise ToolError("it is marked both `waits` and `later`; choose one")
    spec = ToolSpec(name=name, description=description.strip(), parameters=_schema(made))
    try:
        return Registered(tool=made(), spec=spec)
    except Exception as error:  # the code of a game may raise anything
        raise ToolError(f"creating it failed: {type(error).__name__}: {error}") from error


def _schema(made: type[Tool]) -> Mapping[str, Any]:
    arguments: Any = made.Arguments
    if not isinstance(arguments, type) or not issubclass(arguments, ToolArguments):
        raise ToolError("its Arguments must be a subclass of ToolArguments")
    if arguments.model_config.get("extra") != "forbid" or not arguments.model_config.get("strict"):
        raise ToolError("its Arguments must stay strict and forbid extra fields")
    try:
        return schema_of(arguments)
    # pydantic raises many kinds of errors for types without a JSON schema
    except Exception as error:
        raise ToolError(f"its Arguments have no JSON schema: {error}") from error


def _class_at(path: str) -> type[Tool]:
    try:
        found = import_string(path)
    except Exception as error:  # importing a module of the game runs its code
        raise ToolError(f"it cannot be imported: {error}") from error
    if not isinstance(found, type) or not issubclass(found, Tool):
        raise ToolError("it is not a subclass of evennia_ai.npc.tools.tool.Tool")
    if isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise ToolError(f"it does not implement {missing}")
    return found


def _refuse_double(new: Registered, tools: Mapping[str, Registered]) -> None:
    taken = tools.get(new.tool.name)
    if taken is not None:
        other = type(taken.tool)
        raise ToolError(
            f"its name '{new.tool.name}' is taken by {other.__module__}.{other.__qualname__};"
            " choose another name"
        )


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "EVENNIA_AI_TOOLS":
        registry.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.tools")


def toolbox_of(
    npc: NPC, names: Sequence[str], *, event: Event, kind: type[Toolbox] = Toolbox
) -> Toolbox:
    """Return a toolbox with these tools for one turn.

    Names of tools that the game no longer has are skipped. If a tool takes long, the tool that
    reads the results of errands is added.
    """
    known = registry().tools
    tools = [known[name] for name in names if name in known]
    if any(one.tool.later for one in tools):
        tools.append(known[ErrandResult.name])
    return kind(tools, npc=npc, event=event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tools of an NPC, the other tools, and names of chosen tools that no longer exist
    (`gone`).
    """

    has: tuple[Tool, ...]
    others: tuple[Tool, ...]
    gone: tuple[str, ...]


def choice_of(npc: NPC) -> Choice:
    """Return the chosen tools of an NPC and the others, each sorted by name."""
    known = registry().tools
    chosen = settings_of(npc).tools
    return Choice(
        has=tuple(known[name].tool for name in sorted(known) if name in chosen),
        others=tuple(known[name].tool for name in sorted(known) if name not in chosen),
        gone=tuple(sorted(set(chosen) - set(known))),
    )


def choose_tools(npc: NPC, names: Iterable[str], *, by: Actor) -> Choice:
    """Replace the tools of an NPC by those with these names.

    Raises:
        SettingError: A name is invalid. Nothing was changed.
    """
    wanted = tuple(sorted(set(names)))
    change_settings(npc, by=by, tools=wanted or None)
    return choice_of(npc)


def problems_of(npc: NPC) -> tuple[str, ...]:
    """Return the problems of an NPC's chosen tools, as sentences for builders."""
    return tuple(
        f"its tool '{name}' no longer exists in this game;"
        f" remove it with ai/tools {npc.key} = -{name}"
        for name in choice_of(npc).gone
    )
