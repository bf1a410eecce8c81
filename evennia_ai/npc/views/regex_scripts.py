"""The regex scripts of an NPC's view: the game's, then the preset's, then the card's.

The scripts of a preset or a card run only with the grant "regex".
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from evennia_ai.engine.prompt.components import Grant
from evennia_ai.engine.regex_scripts import RegexScript
from evennia_ai.formats.regex_scripts import preset_scripts, running_scripts, scripts_in
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.npc.views.presets import parsed_preset
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.authored.presets import StoredPreset
from evennia_ai.store.authored.regex_scripts import StoredScript

GRANT: Final[Grant] = "regex"


def scripts_for(
    game: Sequence[StoredScript], preset: StoredPreset | None, card: StoredCard | None
) -> tuple[RegexScript, ...]:
    """Return the scripts that run for an NPC with this preset and this card, in their order.

    Raises:
        FormatError: The preset or the card cannot be parsed.
    """
    found = [script for stored in game for script in _of_game(stored)]
    if preset is not None and GRANT in preset.grants:
        found += _of_preset(preset)
    if card is not None and GRANT in card.grants:
        found += _of_card(card)
    return tuple(found)


@lru_cache(maxsize=512)
def _of_game(stored: StoredScript) -> tuple[RegexScript, ...]:
    # The name by which builders call the script may differ from the one in its file.
    return running_scripts([{**stored.raw, "scriptName": stored.name}], "game")


@lru_cache(maxsize=256)
def _of_preset(stored: StoredPreset) -> tuple[RegexScript, ...]:
    listed = preset_scripts(parsed_preset(stored).source)
    return running_scripts(listed, f"preset {stored.name}")


@lru_cache(maxsize=256)
def _of_card(stored: StoredCard) -> tuple[RegexScript, ...]:
    return running_scripts(scripts_in(parsed_card(stored).extensions), f"card {stored.name}")
