"""Personas in SillyTavern's settings.json: each becomes the persona of a player's character.

SillyTavern stores a persona's place as a number. It no longer uses the number 1, which is read as
0.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evennia_ai.cli.game.cast import players_called, which
from evennia_ai.cli.game.folder.authored import Taking
from evennia_ai.cli.game.folder.judged import Judged, left_out
from evennia_ai.cli.game.folder.places import FolderFile
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import decode_text, one_line, read_bytes, read_json
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.prompt.personas import MOST_DEPTH, USUAL_DEPTH, Persona, PersonaPlace
from evennia_ai.store.authored.personas import persona_of, set_persona

_GIVEN_UP: Final = 1
_MOST_DEPTH: Final = 10_000
_PLACES: Final[Mapping[int, PersonaPlace]] = {
    0: "prompt",
    _GIVEN_UP: "prompt",
    2: "before_note",
    3: "after_note",
    4: "depth",
    9: "none",
}
POSITIONS: Final[Mapping[PersonaPlace, int]] = {
    place: number for number, place in _PLACES.items() if number != _GIVEN_UP
}
"""SillyTavern's number for each place."""
_UNUSED: Final = {
    "role": "its role (a player's text is of role user here)",
    "title": "its title",
    "connections": "with whom it is used",
}


def judged_personas(file: FolderFile, taking: Taking) -> Iterator[Judged]:
    """Judge each persona of the settings file. Nothing else in the file is read."""
    told = read_json(
        decode_text(read_bytes(file.path, kind="settings"), kind="settings", where=file.where),
        kind="settings",
        where=file.where,
    )
    user = told.get("power_user") if isinstance(told, dict) else None
    names = user.get("personas") if isinstance(user, dict) else None
    described = user.get("persona_descriptions") if isinstance(user, dict) else None
    if not isinstance(names, dict):
        return
    for avatar, name in names.items():
        where = f"{file.where}: {one_line(str(name))[:60]} ({one_line(avatar)[:60]})"
        found = described.get(avatar) if isinstance(described, dict) else None
        yield _judged(where, name, avatar, found, taking)


def _judged(where: str, name: Any, avatar: str, told: Any, taking: Taking) -> Judged:
    try:
        persona = _persona(told, most=taking.conf.persona_characters)
        ref = _owner(name)
    except FormatError as error:
        return left_out("persona", where, error.message)
    known = persona_of(ref)
    if known is not None and replace(known, kept="") != persona:
        return left_out("persona", where, f"the player of #{ref} has another persona already")
    if known is not None:
        return Judged(kind="persona", where=where, name=f"#{ref}", fate="there")
    most = taking.conf.persona_characters
    notices = [
        f"{words} has no effect; an export writes it again"
        for key, words in _UNUSED.items()
        if told.get(key)
    ]
    if (world := told.get("lorebook")) and isinstance(world, str):
        book, _ = taking.worlds.get(world.casefold(), (one_line(world)[:60], None))
        notices.append(f"its lorebook is {book}: lore/assign {book} = player:{name} assigns it")
    persona = replace(persona, kept=canonical_json({"avatar": avatar, "settings": told}))
    if persona.place == "depth" and (wanted := told.get("depth", 0)) > MOST_DEPTH:
        notices.append(f"its depth {wanted} becomes {MOST_DEPTH}, the greatest possible")
    return Judged(
        kind="persona",
        where=where,
        name=f"#{ref}",
        fate="take",
        why=f"becomes the persona of #{ref}",
        notices=tuple(notices),
        write=partial(set_persona, ref, persona, most_characters=most, by=taking.by),
    )


def exported_persona(persona: Persona, *, name: str, ref: str) -> tuple[str, dict[str, Any]]:
    """Return the picture and the settings with which SillyTavern stores a persona.

    They are those that were imported, as long as the player has not changed the persona.
    """
    kept: dict[str, Any] = json.loads(persona.kept) if persona.kept else {}
    settings: dict[str, Any] = kept.get("settings", {})
    if not settings or _persona(settings, most=sys.maxsize) != replace(persona, kept=""):
        usual = {"role": 0, "lorebook": ""}
        place, depth = POSITIONS[persona.place], persona.depth
        now = {"description": persona.text, "position": place, "depth": depth}
        settings = {**usual, **settings, **now}
    return kept.get("avatar") or f"{name}-{ref}.png", settings


def _owner(name: Any) -> str:
    """Return the ID of the only player's character with this name."""
    refs = players_called(name) if isinstance(name, str) else ()
    if len(refs) != 1:
        which_one = f"could be {which(refs)}" if refs else "is no player's character of the game"
        raise FormatError("persona", f"{one_line(str(name))[:60]} {which_one}")
    return refs[0]


def _persona(told: Any, *, most: int) -> Persona:
    text = told.get("description") if isinstance(told, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise FormatError("persona", "it has no description")
    if len(text) > most:
        problem = f"it has {len(text)} characters; EVENNIA_AI_PERSONA_CHARACTERS is {most}"
        raise FormatError("persona", problem)
    place, depth = told.get("position", 0), told.get("depth", USUAL_DEPTH)
    if not _is_whole(place) or place not in _PLACES:
        problem = f"its position {one_line(repr(place))[:40]} is none of SillyTavern's"
        raise FormatError("persona", problem)
    if not _is_whole(depth) or not 0 <= depth <= _MOST_DEPTH:
        problem = f"its depth {one_line(repr(depth))[:40]} is not a number from 0 to {_MOST_DEPTH}"
        raise FormatError("persona", problem)
    depth = min(depth, MOST_DEPTH)
    return Persona(text=text.replace("\r\n", "\n"), place=_PLACES[place], depth=depth)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
