"""Providers of facts: those a game names in EVENNIA_AI_CONTEXT_PROVIDERS, asked in that order.

A word names one of ours, a dotted path one of the game's. A provider is a function (npc, event,
conversation) -> str. `event` is what the NPC answers, None in a preview of nothing said;
`conversation` is None where none was opened yet. What it gives is one block; "" makes none. One
that fails is left out of that prompt and told in the log once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from django.utils.module_loading import import_string
from evennia.utils import logger

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.npc.inputs.shipped_providers import (
    acquaintance,
    elsewhere,
    game_time,
    goals,
    kb_meta_prompt,
    place,
    relation,
    shown,
    speaker,
)
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.history.record_rows import ConversationRef

SETTING: Final = "EVENNIA_AI_CONTEXT_PROVIDERS"

Tell: TypeAlias = Callable[..., str]

_OURS: Final[Mapping[str, Tell]] = MappingProxyType(
    {
        tell.__name__: tell
        for tell in (
            kb_meta_prompt,
            speaker,
            relation,
            acquaintance,
            shown,
            place,
            goals,
            elsewhere,
            game_time,
        )
    }
)
SHIPPED: Final = tuple(_OURS)
"""The names of ours."""

FILLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("speaker", "relation", "acquaintance", "shown"), "entity_context"),
        "elsewhere": "context_buffer",
    }
)
"""Those of ours that tell what a component stands for: they fill it."""

NEEDS: Final[Mapping[str, str]] = MappingProxyType({"kb_meta_prompt": TOOL})
"""Those of ours that tell what an NPC can do nothing with that has not this tool."""

_BY_SETTINGS: Final = frozenset({"acquaintance", "elsewhere"})
"""Those of ours that are handed the settings of the game as well."""


class ProviderError(EvenniaAIError):
    """What a dotted path of the setting names cannot be a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider: `key` is what its block is called, `told` are its failures that were logged."""

    key: str
    path: str
    tell: Tell
    told: set[str] = field(default_factory=set, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """The providers in their order, and what is wrong with those that were left out."""

    members: tuple[Provider, ...]
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def providers_of(paths: tuple[str, ...]) -> Providers:
    """The providers of these names and dotted paths; one that is named twice counts once."""
    members: list[Provider] = []
    problems: list[str] = []
    for path in dict.fromkeys(paths):
        try:
            tell = _function_at(path)
        except ProviderError as error:
            problems.append(f"{path}: {error}")
        else:
            members.append(Provider(key=_key(path, members), path=path, tell=tell))
    for problem in problems:
        logger.log_err(f"evennia_ai: {SETTING}: {problem}; it is left out")
    return Providers(members=tuple(members), problems=tuple(problems))


def own_paths(paths: tuple[str, ...]) -> dict[str, str]:
    """The game's own functions among the providers by their keys; ours are called as keys are."""
    return {one.key: one.path for one in providers_of(paths).members if one.key != one.path}


def blocks_of(
    npc: NPC,
    event: Event | None,
    conversation: ConversationRef | None,
    *,
    conf: Conf,
    tools: Collection[str] = (),
) -> tuple[DynamicBlock, ...]:
    """What the providers of the settings tell `npc` now, each block under its provider's key.

    `tools` are the names of those that the NPC has.
    """
    blocks: list[DynamicBlock] = []
    for provider in providers_of(conf.context_providers).members:
        needed = NEEDS.get(provider.path)
        if needed is None or needed in tools:
            settings = {"conf": conf} if provider.path in _BY_SETTINGS else {}
            text = _told(provider, npc, event, conversation, **settings)
            if text.strip():
                fills = FILLS.get(provider.path, "")
                blocks.append(DynamicBlock(key=provider.key, text=text, component=fills))
    return tuple(blocks)


def _told(provider: Provider, *moment: Any, **settings: Conf) -> str:
    """What a provider tells, "" where it fails."""
    try:
        text: object = provider.tell(*moment, **settings)
    except Exception as error:  # a game's own code may raise anything
        _tell_once(provider, f"raised {type(error).__name__}: {error}", of=type(error).__name__)
        return ""
    if isinstance(text, str):
        return text
    kind = type(text).__name__
    _tell_once(provider, f"gave {kind} and no text", of=kind)
    return ""


def _function_at(path: str) -> Tell:
    if path in _OURS:
        return _OURS[path]
    if "." not in path:
        known = ", ".join(SHIPPED)
        raise ProviderError(f"there is none of this name; there are {known}, and dotted paths")
    try:
        found = import_string(path)
    except Exception as error:  # importing a game's module runs its code
        raise ProviderError(f"it cannot be imported: {error}") from error
    if not callable(found):
        raise ProviderError("it is no function")
    tell: Tell = found
    return tell


def _key(path: str, taken: Sequence[Provider]) -> str:
    """The name of the function; where another has it already, the whole path."""
    name = path.rpartition(".")[2]
    return path if any(known.key == name for known in taken) else name


def _tell_once(provider: Provider, problem: str, *, of: str) -> None:
    """Log a failure, the first of each sort: a provider is asked in every turn."""
    if of in provider.told:
        return
    provider.told.add(of)
    logger.log_err(
        f"evennia_ai: {SETTING}: {provider.path} {problem}; its facts are left out of this prompt."
        " The next failure of this sort is not told again"
    )
