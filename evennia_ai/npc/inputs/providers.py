"""Providers of facts: functions whose texts become blocks of the prompt.

The setting EVENNIA_AI_CONTEXT_PROVIDERS lists them, and they are called in its order. A plain word
names one of our own providers, a dotted path names one of the game's.

A provider is a function `(npc, event, conversation) -> str`. `event` is what the NPC answers; it is
None in a preview without an event. `conversation` is None if it was never opened. An empty text
makes no block. If a provider fails, it is skipped in that prompt. The first failure of each kind is
logged.
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
    belongings,
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
            belongings,
            goals,
            elsewhere,
            game_time,
        )
    }
)
SHIPPED: Final = tuple(_OURS)
"""The names of our own providers."""

FILLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("speaker", "relation", "acquaintance", "shown"), "entity_context"),
        "elsewhere": "context_buffer",
    }
)
"""By provider: the component in whose place its block is put."""

NEEDS: Final[Mapping[str, str]] = MappingProxyType({"kb_meta_prompt": TOOL})
"""By provider: the tool that an NPC must have for it to be called."""

_BY_SETTINGS: Final = frozenset({"acquaintance", "elsewhere"})
"""The providers that also get the game's settings, as `conf`."""


class ProviderError(EvenniaAIError):
    """A name or path in the setting is not that of a provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider of facts.

    `key` names its block; `told` has the kinds of failures already logged.
    """

    key: str
    path: str
    tell: Tell
    told: set[str] = field(default_factory=set, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """The usable providers in order, and the problems of the others."""

    members: tuple[Provider, ...]
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def providers_of(paths: tuple[str, ...]) -> Providers:
    """Return the providers with these names and paths. Repeated ones count once."""
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
        logger.log_err(f"evennia_ai: {SETTING}: {problem}; it is ignored")
    return Providers(members=tuple(members), problems=tuple(problems))


def own_paths(paths: tuple[str, ...]) -> dict[str, str]:
    """Return the dotted paths of the game's own providers, by key."""
    return {one.key: one.path for one in providers_of(paths).members if one.key != one.path}


def blocks_of(
    npc: NPC,
    event: Event | None,
    conversation: ConversationRef | None,
    *,
    conf: Conf,
    tools: Collection[str] = (),
) -> tuple[DynamicBlock, ...]:
    """Return the blocks that the providers in the settings make for `npc` now.

    Args:
        tools: The names of the NPC's tools.
    """
    blocks: list[DynamicBlock] = []
    for provider in providers_of(conf.context_providers).members:
        needed = NEEDS.get(provider.path)
        if needed is None or needed in tools:
            settings = {"conf": conf} if provider.path in _BY_SETTINGS else {}
            text = _call_provider(provider, npc, event, conversation, **settings)
            if text.strip():
                fills = FILLS.get(provider.path, "")
                blocks.append(DynamicBlock(key=provider.key, text=text, component=fills))
    return tuple(blocks)


def _call_provider(provider: Provider, *moment: Any, **settings: Conf) -> str:
    """Return a provider's text, "" if it fails."""
    try:
        text: object = provider.tell(*moment, **settings)
    except Exception as error:  # the game's own code may raise anything
        _tell_once(provider, f"raised {type(error).__name__}: {error}", of=type(error).__name__)
        return ""
    if isinstance(text, str):
        return text
    kind = type(text).__name__
    _tell_once(provider, f"returned {kind} instead of a text", of=kind)
    return ""


def _function_at(path: str) -> Tell:
    if path in _OURS:
        return _OURS[path]
    if "." not in path:
        known = ", ".join(SHIPPED)
        raise ProviderError(f"unknown name; use one of {known}, or a dotted path")
    try:
        found = import_string(path)
    except Exception as error:  # importing the game's module runs its code
        raise ProviderError(f"it cannot be imported: {error}") from error
    if not callable(found):
        raise ProviderError("it is not a function")
    tell: Tell = found
    return tell


def _key(path: str, taken: Sequence[Provider]) -> str:
    """Return the name of the function at this path, or the whole path if that name is taken."""
    name = path.rpartition(".")[2]
    return path if any(known.key == name for known in taken) else name


def _tell_once(provider: Provider, problem: str, *, of: str) -> None:
    """Log the first failure of each kind.

    More would flood the log, as each turn calls providers.
    """
    if of in provider.told:
        return
    provider.told.add(of)
    logger.log_err(
        f"evennia_ai: {SETTING}: {provider.path} {problem}; its facts are left out of this prompt."
        " Further failures of this kind are not logged"
    )
