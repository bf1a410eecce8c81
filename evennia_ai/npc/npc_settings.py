"""Where the settings of one NPC are kept: in one Evennia Attribute, with who changed them.

They are judged on the way in (`evennia_ai.services.settings.npc`); a mind reads them once and keeps
them until the Attribute changes, whoever changes it.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.engine.actors import Actor
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.services.settings.npc import (
    NPCSettings,
    check_settings,
    read_settings,
    usable_settings,
)

ATTRIBUTE: Final = "ai_settings"
MOST_CHANGES: Final = 50
"""How many changes are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """One change of a setting: when, by whom, from what to what; None is what the game has."""

    at: float
    by: str
    name: str
    old: Any
    new: Any


_OF_A_CHANGE: Final = frozenset(one.name for one in fields(SettingChange))


def settings_of(npc: NPC) -> NPCSettings:
    """What is set for this NPC."""
    found: NPCSettings = npc.ai.settings
    return found


def settings_in(stored: Any) -> tuple[NPCSettings, tuple[str, ...]]:
    """What the value of the Attribute `ATTRIBUTE` says, and what of it cannot be."""
    return read_settings(_values_in(stored))


def given_to(npc: NPC) -> frozenset[str]:
    """The names of the settings that were set; all others are as the game has them."""
    return frozenset(_values_in(_stored(npc)))


def changes_of(npc: NPC) -> tuple[SettingChange, ...]:
    """What was changed, the newest last; at most the last 50 changes."""
    return tuple(SettingChange(**one) for one in _changes_in(_stored(npc)))


def changed(npc: NPC, *, by: Actor, **values: Any) -> NPCSettings:
    """Set these settings of an NPC, None for what the game has; what it has then.

    SettingError says which cannot be, and nothing is changed. Each change is logged and remembered
    with who made it. What was stored and cannot be goes with the first change.
    """
    by.check(f"changing the settings of {npc.key}")
    stored = _stored(npc)
    old = {str(name): value for name, value in _values_in(stored).items()}
    kept, _ = usable_settings(old)
    wanted = {name: value for name, value in {**kept, **values}.items() if value is not None}
    new = check_settings(wanted, who=npc.key)
    differing = [name for name in {**old, **values} if old.get(name) != new.get(name)]
    made = [
        SettingChange(at=time.time(), by=by.name, name=name, old=old.get(name), new=new.get(name))
        for name in differing
    ]
    if made:
        changes = [*_changes_in(stored), *map(asdict, made)][-MOST_CHANGES:]
        npc.attributes.add(ATTRIBUTE, {"values": new, "changes": changes})
    for one in made:
        told = f"{one.name} was {one.old!r}, is {one.new!r}"
        logger.log_msg(f"evennia_ai: NPC {npc.id}: {told}, set by {by}")
    return settings_of(npc)


def _stored(npc: NPC) -> Any:
    """What the Attribute holds, None where there is none; warm, this makes no query."""
    attribute = npc.attributes.get(ATTRIBUTE, return_obj=True)
    return None if attribute is None else attribute.db_value


def _values_in(stored: Any) -> dict[str, Any]:
    values = stored.get("values") if isinstance(stored, Mapping) else None
    return dict(values) if isinstance(values, Mapping) else {}


def _changes_in(stored: Any) -> list[dict[str, Any]]:
    changes = stored.get("changes") if isinstance(stored, Mapping) else None
    listed = changes if isinstance(changes, list) else []
    return [dict(one) for one in listed if isinstance(one, Mapping) and set(one) == _OF_A_CHANGE]
