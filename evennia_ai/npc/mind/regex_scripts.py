"""The regex scripts of the game, of cards and of presets, as builders list and edit them."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EditConflictError, EvenniaAIError, NotStoredError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.regex_scripts import ScriptRun
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.writing import keeps_greetings
from evennia_ai.formats.regex_scripts import (
    FIELDS,
    MEMBER,
    ReadScript,
    dump_script,
    find_script,
    preset_scripts,
    read_scripts,
    scripts_in,
    with_field,
    with_preset_scripts,
)
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.npc.views.regex_scripts import GRANT
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import regex_scripts as store
from evennia_ai.store.authored.card_files import edited_card_file
from evennia_ai.store.authored.cards import CARDS, StoredCard, edit_card
from evennia_ai.store.authored.presets import PRESETS, StoredPreset
from evennia_ai.store.authored.regex_scripts import SCRIPTS, game_scripts

Holder = Literal["game", "card", "preset"]
RawChange = Callable[[list[Any]], list[Any]]
"""A change of a list of raw scripts."""
MOST_HOLDERS: Final = 200
"""The most cards and the most presets that are listed."""


@dataclass(frozen=True, slots=True)
class ScriptList:
    """The scripts of the game, of one card or of one preset, in their order."""

    kind: Holder
    name: str
    """The name of the card or the preset; "" for the game."""
    scripts: tuple[ReadScript, ...]
    is_allowed: bool
    """True if the scripts run: the game's always, others with the grant "regex"."""
    stored: StoredCard | StoredPreset | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()

    @property
    def notice(self) -> str:
        """A sentence that tells how to let the scripts run; "" if they may."""
        if self.is_allowed or not self.scripts:
            return ""
        return f"They do not run: {self.kind}/grant {self.name} = {GRANT} allows them to."

    def index(self, wanted: str) -> int:
        """Return the index of the script with this name or number.

        Raises:
            NotStoredError: there is none; the message lists the names.
        """
        at = find_script(self.scripts, wanted)
        if at is None:
            names = tuple(one.name for one in self.scripts)
            raise NotStoredError(f"regex script of the {self}", wanted, names)
        return at


def scripts_of(kind: Holder, name: str = "") -> ScriptList:
    """Return the scripts of the game, a card or a preset.

    Raises:
        NotStoredError: there is no such card or preset.
        FormatError: the card cannot be parsed.
    """
    if kind == "game":
        raws = [{**one.raw, "scriptName": one.name} for one in game_scripts()]
        return ScriptList("game", "", read_scripts(raws), is_allowed=True)
    if kind == "card":
        card = CARDS.existing(CARDS.known_name(name))
        listed = scripts_in(parsed_card(card).extensions)
        return ScriptList("card", card.name, read_scripts(listed), GRANT in card.grants, card)
    preset = PRESETS.existing(PRESETS.known_name(name))
    listed = preset_scripts(json.loads(preset.source))
    return ScriptList("preset", preset.name, read_scripts(listed), GRANT in preset.grants, preset)


def all_scripts() -> list[ScriptList]:
    """Return the scripts of the game, and those of each card and preset that has some."""
    found = [scripts_of("game")]
    holders: tuple[tuple[Holder, tuple[str, ...]], ...] = (
        ("preset", store.names_with_scripts("preset", most=MOST_HOLDERS)),
        ("card", store.names_with_scripts("card", most=MOST_HOLDERS)),
    )
    for kind, names in holders:
        for name in names:
            try:
                one = scripts_of(kind, name)
            except EvenniaAIError:  # its own page and command report why it cannot be read
                continue
            found += [one] if one.scripts else []
    return found


def replace_at(listed: list[Any], script: ReadScript, new: Sequence[Any]) -> list[Any]:
    """Return a list of raw scripts with new ones in the place of a script."""
    at = next(at for at, one in enumerate(listed) if one is script.raw or one == script.raw)
    return [*listed[:at], *new, *listed[at + 1 :]]


def card_change(change: RawChange) -> Callable[[Card], Card]:
    """Return a change of a card that changes only its scripts."""

    def changed(card: Card) -> Card:
        listed = change([*scripts_in(card.extensions)])
        return replace(card, extensions={**card.extensions, MEMBER: listed})

    return changed


def change_preset(preset: StoredPreset, change: RawChange, *, by: Actor) -> StoredPreset:
    """Save a preset with other scripts.

    Raises:
        EditConflictError: the preset was changed meanwhile.
    """
    source = json.loads(preset.source)
    edited = with_preset_scripts(source, change([*preset_scripts(source)]))
    text = json.dumps(edited, ensure_ascii=False, allow_nan=False)
    return store.edit_preset_file(preset, text, by=by)


def save_game_script(script: ReadScript, raw: dict[str, Any], *, by: Actor) -> int:
    """Save another JSON object as a script of the game, and return its revision.

    Raises:
        EditConflictError: the script was changed meanwhile.
    """
    now = SCRIPTS.existing(script.name)
    saved = store.save_script(script.name, dump_script(raw), by=by, seen_revision=now.revision)
    return saved.revision


def try_script(script: ReadScript, text: str, *, char: str, user: str) -> tuple[str, str]:
    """Return what a script makes of a text, and a sentence about it.

    The script runs in the first of its placements, at a depth at which it runs.
    """
    placements = script.placements or ("ai_output",)
    engine = script.for_engine("")
    dice = Dice(turn="0", conversation="0")
    surface: Literal["prompt", "display"] = (
        "display" if engine.display_only and not engine.prompt_only else "prompt"
    )
    run = ScriptRun([engine], surface, values={"char": char, "user": user}, dice=dice)
    made = run.text(text, placements[0], depth=engine.min_depth or 0, where="the text", memo=Memo())
    return made, next(run.verdicts()).reason


def edit_script(
    where: ScriptList, script: ReadScript, fields: Mapping[str, str], *, seen: int, by: Actor
) -> None:
    """Write several fields of a script, given as builders type them.

    This reads and writes the file of a card, so it runs in the thread of a page.

    Args:
        where: The list of the script.
        script: The script.
        fields: The new values, by the words of `FIELDS`.
        seen: The revision that the builder saw: of the script of the game, the card or the preset.
        by: The person who edits the script.

    Raises:
        EditConflictError: it was changed meanwhile.
        FormatError: a field cannot have its value.
    """
    raw = SCRIPTS.existing(script.name).raw if where.kind == "game" else dict(script.raw)
    after = raw
    for word, typed in fields.items():
        # A form sends all texts. One that stays is not checked, so a broken pattern stays editable.
        if str(after.get(FIELDS[word].member, "")).replace("\r\n", "\n") == typed:
            continue
        changed = with_field(after, word, typed)
        # A member that the file lacks, or writes in another way, stays if its meaning stays.
        if read_scripts([changed])[0].file != read_scripts([after])[0].file:
            after = changed
    revision = revision_of(where, script)
    if revision != seen:
        raise EditConflictError(f"regex scripts of the {where}", seen, revision, "another builder")
    if after == raw:
        return

    def change(listed: list[Any]) -> list[Any]:
        return replace_at(listed, script, [after])

    if isinstance(where.stored, StoredCard):
        file = CARDS.revision_file(where.name, where.stored.revision)
        before, card, made = edited_card_file(
            file, card_change(change), modified_at=int(time.time()), limits=conf().card_limits
        )
        if made is not None:
            edit_card(where.stored, made, keeps_greetings=keeps_greetings(before, card), by=by)
    elif isinstance(where.stored, StoredPreset):
        change_preset(where.stored, change, by=by)
    else:
        save_game_script(script, after, by=by)


def revision_of(where: ScriptList, script: ReadScript) -> int:
    """Return the revision of a script of the game, or of the card or preset that has the script."""
    return SCRIPTS.existing(script.name).revision if where.stored is None else where.stored.revision
