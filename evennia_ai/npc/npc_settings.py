"""The settings of one NPC, stored in an Evennia Attribute together with their changes.

`services.settings.npc` checks the values before they are stored. The mind of an NPC caches its
settings until the Attribute changes.
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
"""The most changes that are stored for an NPC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """One change of a setting. A value of None means that the NPC follows the game's setting."""

    at: float
    by: str
    name: str
    old: Any
    new: Any


_OF_A_CHANGE: Final = frozenset(one.name for one in fields(SettingChange))


def settings_of(npc: NPC) -> NPCSettings:
    """Return the settings of this NPC."""
    found: NPCSettings = npc.ai.settings
    return found


def settings_in(stored: Any) -> tuple[NPCSettings, tuple[str, ...]]:
    """Parse the value of the Attribute `ATTRIBUTE`. Return the settings and their problems."""
    return read_settings(_values_in(stored))


def given_to(npc: NPC) -> frozenset[str]:
    """Return the names of the settings that this NPC has of its own.

    For all other settings it follows the game.
    """
    return frozenset(_values_in(_stored_value(npc)))


def changes_of(npc: NPC) -> tuple[SettingChange, ...]:
    """Return the last 50 changes, newest last."""
    return changes_in(_stored_value(npc))


def changes_in(stored: Any) -> tuple[SettingChange, ...]:
    """Return the last 50 changes in the value of the Attribute `ATTRIBUTE`, newest last."""
    return tuple(SettingChange(**one) for one in _changes_in(stored))


def change_settings(npc: NPC, *, by: Actor, **values: Any) -> NPCSettings:
    """Change settings of an NPC and return the new ones.

    None as a value makes the NPC follow the game's setting again. Each change is logged, and stored
    with its author. Invalid values in the Attribute are removed by the first change.

    Raises:
        SettingError: A value is invalid. Nothing was changed.
    """
    by.check(f"changing the settings of {npc.key}")
    stored = _stored_value(npc)
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


def _stored_value(npc: NPC) -> Any:
    """Return the value of the Attribute, None if there is none. This makes no query once cached."""
    attribute = npc.attributes.get(ATTRIBUTE, return_obj=True)
    return None if attribute is None else attribute.db_value


def _values_in(stored: Any) -> dict[str, Any]:
    values = stored.get("values") if isinstance(stored, Mapping) else None
    return dict(values) if isinstance(values, Mapping) else {}


def _changes_in(stored: Any) -> list[dict[str, Any]]:
    changes = stored.get("changes") if isinstance(stored, Mapping) else None
    listed = changes if isinstance(changes, list) else []
    return [dict(one) for one in listed if isinstance(one, Mapping) and set(one) == _OF_A_CHANGE]
