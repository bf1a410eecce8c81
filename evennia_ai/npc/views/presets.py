"""What an assigned preset adds to the view of an NPC: prompts, rules and triggers.

A preset's file is parsed once for all NPCs and all its switches. If its grants do not allow texts
of the role system before the history, its formats and headings are not used either.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from evennia_ai.engine.prompt.assembly.rules import NEW_CHAT, AssemblyRules
from evennia_ai.engine.prompt.components import (
    HISTORY_ID,
    NO_GRANTS,
    Grant,
    Grants,
    PromptComponent,
)
from evennia_ai.engine.prompt.contexts import AUTONOMOUS, BUILT_IN
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import CARD_KEYS, card_components
from evennia_ai.formats.presets.mapping import (
    keys_left_out,
    place_texts,
    preset_assembly,
    replaceable_texts,
)
from evennia_ai.formats.presets.preset import JAILBREAK, MAIN, OWN, Generation, Preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.presets.switches import switch_prompt
from evennia_ai.npc.views.parse_cache import MOST_PARSED, Parsed, compile_ahead
from evennia_ai.store.authored.presets import StoredPreset

# SillyTavern calls a turn in which a character acts by itself "quiet".
_GENERATIONS: Final[Mapping[str, Generation]] = {AUTONOMOUS.name: "quiet"}
_KEYS: Final = frozenset({*(own.key for own in OWN.values()), NEW_CHAT})
# The card fields that replace texts of a preset, and the grants that they need.
_REPLACED_BY: Final[Mapping[str, tuple[str, Grant]]] = {
    OWN[MAIN].key: ("system_prompt", "system_prompt"),
    OWN[JAILBREAK].key: ("post_history_instructions", "after_history"),
}


@dataclass(frozen=True, slots=True)
class _PresetText:
    """The text of a preset and its name, which error messages contain."""

    name: str
    sha256: str
    source: str = field(compare=False, repr=False)


_texts: Final = Parsed[_PresetText, Preset](
    lambda text: read_preset(text.source, name=text.name), most=MOST_PARSED
)


def parsed_preset(stored: StoredPreset) -> Preset:
    """Return the parsed preset with the game's switches applied.

    Its texts are compiled too, so that a thread can do all the slow work in advance.

    Raises:
        FormatError: The preset cannot be parsed.
    """
    return _presets(stored)


def _parse_preset(stored: StoredPreset) -> Preset:
    preset = _texts(_PresetText(stored.name, stored.sha256, stored.source))
    for identifier, on in stored.switches:
        preset = switch_prompt(preset, identifier, on)
    compile_ahead((*(prompt.content for prompt in preset.prompts), *preset.texts.values()))
    return preset


_presets: Final = Parsed[StoredPreset, Preset](_parse_preset, most=MOST_PARSED)


def is_preset_read(stored: StoredPreset) -> bool:
    """True if the parsed preset and its compiled texts are in the cache."""
    return stored in _presets


def is_of_preset(key: str, card: Card | None, *, grants: Grants) -> bool:
    """True if the preset would provide this component, when no builder made it.

    Args:
        card: The card that the NPC plays. Its own texts replace some of the preset's.
    """
    if key in _REPLACED_BY:
        return not is_replaced(key, card, grants=grants)
    return key not in CARD_KEYS and (key in _KEYS or key.startswith("st_"))


def is_replaced(key: str, card: Card | None, *, grants: Grants) -> bool:
    """True if the card's own text replaces the preset's text for this component key."""
    if key not in _REPLACED_BY or card is None:
        return False
    field_name, needed = _REPLACED_BY[key]
    return needed in grants and bool(getattr(card, field_name).strip())


def plugged_components(
    preset: Preset | None,
    card: Card | None,
    *,
    preset_grants: Grants,
    card_grants: Grants = NO_GRANTS,
    post_history_depth: int,
) -> tuple[PromptComponent, ...]:
    """Return the components of a preset and a card. The card's texts replace the preset's."""
    defaults = replaceable_texts(preset, grants=preset_grants) if preset else {}
    main, after = (defaults.get(key, "") for key in _REPLACED_BY)
    of_card: Iterable[PromptComponent] = ()
    if card is not None:
        of_card = card_components(
            card,
            grants=card_grants,
            default_system_prompt=main,
            default_post_history=after,
            post_history_depth=post_history_depth,
        )
    return place_texts(preset, of_card, grants=preset_grants) if preset else tuple(of_card)


def combine_components(
    own: Iterable[PromptComponent], plugged: Iterable[PromptComponent]
) -> list[PromptComponent]:
    """Combine the game's components with those of preset and card.

    A builder's component replaces one with the same key. A preset can switch the history off, but
    not change it otherwise.
    """
    listed, known = [*own], [*plugged]
    is_off = any(one.id == HISTORY_ID and not one.enabled for one in known)
    if is_off:
        listed = [one.changed(enabled=False) if one.id == HISTORY_ID else one for one in listed]
    taken = {one.key for one in listed}
    return [*listed, *(one for one in known if one.key not in taken)]


def assembly_with(rules: AssemblyRules, preset: Preset, *, grants: Grants) -> AssemblyRules:
    """Return the game's assembly rules, overridden by the preset's as far as its grants allow.

    The game always decides how a full history is cut, and if examples are kept. It also decides
    about names in the history, unless the preset wants them always or never. In a room more than
    two may speak, so the prompt has to name the speakers.
    """
    given = replace(
        preset_assembly(preset),
        history_cut=rules.history_cut,
        pin_examples=rules.pin_examples,
        names=preset.names or rules.names,
    )
    if not {"fields", "roles"} <= grants:
        given = replace(
            given,
            example_heading="",
            scenario_format="",
            personality_format="",
            lore_format="",
        )
    return given if "after_history" in grants else replace(given, stand_in="")


def triggered_off(preset: Preset) -> Mapping[str, frozenset[str]]:
    """Return the keys of the preset's prompts that their triggers leave out, by context."""
    return {
        context.name: keys_left_out(preset, _GENERATIONS.get(context.name, "normal"))
        for context in BUILT_IN
    }
