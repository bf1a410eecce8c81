"""Convert a preset to prompt components and assembly rules, within the limits of its grants.

Macros in the preset's text are expanded; template logic never runs. Each grant of a preset
(`evennia_ai.engine.prompt.components`) allows one thing:

    system_prompt  the main prompt comes first; a card's system prompt may replace it
    fields         the other prompts are placed before the history
    after_history  prompts that the order has after the history are placed after the history
    positions      the order decides where texts of the card, the persona and lore are placed
    roles          the prompts and these texts may have the role system or assistant

A prompt without its grant is placed inside the history as a message of the user: at its own depth,
at the top, or near the end if the order has it after the history. Without the grant `positions`,
texts of the card stay where they are without a preset.

The IDs of components follow the order of the preset. Prompts before the character's description get
IDs from 11, after the game's own texts. The description and the prompts after it get IDs from 1061,
because the game must introduce the character first. Prompts after the history get IDs from 5001.
Multiples of 10 are reserved for the engine.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from evennia_ai.engine.prompt.assembly.rules import LORE, NEW_CHAT, PRESETS, AssemblyRules
from evennia_ai.engine.prompt.components import (
    CONTAINED_PRIORITY,
    HISTORY_ID,
    MAX_DEPTH,
    STATIC_COMPONENTS,
    Grant,
    Grants,
    PromptComponent,
)
from evennia_ai.formats.cards.components import DEFAULT_DEPTH as AFTER_DEPTH
from evennia_ai.formats.presets.preset import (
    HISTORY,
    JAILBREAK,
    MAIN,
    NEW_CHAT_TEXT,
    OWN,
    OrderItem,
    Preset,
    PresetPrompt,
)

FIRST_ID: Final = 11
DESCRIBED_ID: Final = 1061
AFTER_ID: Final = HISTORY_ID + 1
NEW_CHAT_ID: Final = HISTORY_ID - 1
_FIRST_ROOM: Final = 890
"""The number of prompts that can precede the description: IDs 11 to 999, no multiples of 10."""
_DESCRIPTION: Final = "charDescription"
_HISTORY_COMPONENT: Final = next(one for one in STATIC_COMPONENTS if one.id == HISTORY_ID)
_OWN_TEXT_GRANTS: Final[dict[str, Grant]] = {MAIN: "system_prompt", JAILBREAK: "after_history"}


def preset_components(
    preset: Preset, *, grants: Grants, after_depth: int = AFTER_DEPTH
) -> tuple[PromptComponent, ...]:
    """Return the prompts in a preset's order as components, sorted by ID.

    Prompts that are switched off become disabled components. The main prompt and the post-history
    instructions have the role system even without the grant `roles`: the grant for each of these
    texts includes the role, as for a card's texts. Markers become components without text, which
    `place_texts` fills.

    Args:
        after_depth: the depth of prompts after the history if the grant for them is missing.
    """
    placing = _Placing(grants, after_depth)
    made = [
        placing.prompt_component(
            preset.by_identifier[item.identifier], number, item.enabled, is_after
        )
        for item, number, is_after in number_prompts(preset)
        if item.identifier != HISTORY
    ]
    made += [placing.new_chat_component(preset)]
    if "positions" in grants and not preset.is_on(HISTORY) and HISTORY in preset.switches:
        made += [_HISTORY_COMPONENT.changed(enabled=False)]
    return tuple(sorted((one for one in made if one is not None), key=lambda one: one.id))


def preset_assembly(preset: Preset) -> AssemblyRules:
    """Return the assembly rules that a preset sets: formats, names, quotes, merging."""
    texts = preset.texts
    lore = texts["wi_format"]
    return replace(
        PRESETS["sillytavern"],
        example_heading=texts["new_example_chat_prompt"],
        scenario_format=texts["scenario_format"],
        personality_format=texts["personality_format"],
        lore_format=lore if LORE in lore else "",
        names=preset.names or PRESETS["sillytavern"].names,
        stand_in=texts["send_if_empty"],
        squash=preset.squash,
    )


def keys_left_out(preset: Preset, generation: str) -> frozenset[str]:
    """Return the keys of a preset's components whose triggers exclude a kind of generation.

    Answers of NPCs are of the kind `normal`, model calls in the background of the kind `quiet`.
    """
    return frozenset(
        key
        for prompt in preset.prompts
        if prompt.triggers and generation not in prompt.triggers
        for key in {prompt.key, contained_key(prompt)}
    )


def replaceable_texts(preset: Preset, *, grants: Grants) -> dict[str, str]:
    """Return a preset's texts that a card may replace with its own, by key of the component.

    `card_components` takes these texts as `default_system_prompt` and `default_post_history`.
    """
    made = {one.key: one for one in preset_components(preset, grants=grants)}
    keys = (OWN[name].key for name in _OWN_TEXT_GRANTS)
    return {key: made[key].content for key in keys if key in made and made[key].enabled}


def place_texts(
    preset: Preset,
    texts: Iterable[PromptComponent],
    *,
    grants: Grants,
    after_depth: int = AFTER_DEPTH,
) -> tuple[PromptComponent, ...]:
    """Return a preset's components with texts of the card and the persona put at their markers.

    A card's system prompt and post-history instructions replace those of the preset, unless the
    preset forbids it.

    Args:
        texts: components of the card and the persona. A component that lacks its grant stays inside
            the history.
        grants: the grants of the preset.
        after_depth: the depth of prompts after the history if the grant for them is missing.
    """
    made = preset_components(preset, grants=grants, after_depth=after_depth)
    placed = {one.key: one for one in made}
    forbidden = {prompt.key for prompt in preset.by_identifier.values() if prompt.forbids_overrides}
    for text in texts:
        place = placed.get(text.key)
        if place is None or text.is_contained:
            placed[text.key] = text
        elif text.key not in forbidden:
            placed[text.key] = text.changed(
                id=place.id,
                role=place.role if "roles" in grants else text.role,
                enabled=place.enabled,
                placement=place.placement,
                injection_depth=place.injection_depth,
                injection_order=place.injection_order,
            )
    return tuple(sorted(placed.values(), key=lambda one: one.id))


def needed_grants(prompt: PresetPrompt, *, is_after: bool) -> Grants:
    """Return the grants that a preset's prompt needs for its place and its role."""
    if prompt.is_marker:
        roles: Grants = frozenset() if prompt.role == "system" else frozenset({"roles"})
        return roles | {"positions"}
    needed = _text_grants(prompt, is_after=is_after)
    is_own = prompt.identifier in _OWN_TEXT_GRANTS and prompt.role == "system"
    if prompt.role == "user" or (is_own and prompt.position == "relative"):
        return needed
    return needed | {"roles"}


def _text_grants(prompt: PresetPrompt, *, is_after: bool) -> Grants:
    """Return the grants that a preset's prompt needs for its place.

    A prompt that a card may replace always needs one.
    """
    own = _OWN_TEXT_GRANTS.get(prompt.identifier)
    needed: set[Grant] = set() if own is None else {own}
    if prompt.position == "relative" and is_after:
        needed.add("after_history")
    elif prompt.position == "relative" and prompt.identifier != MAIN:
        needed.add("fields")
    return frozenset(needed)


def number_prompts(preset: Preset) -> Iterator[tuple[OrderItem, int, bool]]:
    """Yield each line of a preset's order, its component's ID, and whether it follows the history.

    A marker that the order lacks is added at the end, as in SillyTavern.
    """
    unnamed_markers = [
        OrderItem(name, True)
        for name, own in OWN.items()
        if own.is_marker and name != HISTORY and name not in preset.switches
    ]
    order = [*preset.order, *unnamed_markers]
    names = [item.identifier for item in order]
    history = names.index(HISTORY) if HISTORY in names else len(names)
    described = names.index(_DESCRIPTION) if _DESCRIPTION in names[:history] else history
    ids = _free_ids(FIRST_ID)
    for index, item in enumerate(order):
        if index == described and index <= _FIRST_ROOM:
            ids = _free_ids(DESCRIBED_ID)
        if index == history + 1:
            ids = _free_ids(AFTER_ID)
        yield item, next(ids), index > history


def _free_ids(first: int) -> Iterator[int]:
    return (number for number in range(first, 10**6) if number % 10)


def contained_key(prompt: PresetPrompt) -> str:
    """Return the key of the component of a preset's prompt that lacks its grant.

    The key differs from the usual one, so no card can replace the text.
    """
    return f"st_{prompt.identifier}" if prompt.identifier in _OWN_TEXT_GRANTS else prompt.key


class _Placing:
    """A factory that turns a preset's prompts into components, limited by the preset's grants."""

    def __init__(self, grants: Grants, after_depth: int) -> None:
        self._grants = grants
        self._after_depth = after_depth

    def prompt_component(
        self, prompt: PresetPrompt, number: int, enabled: bool, is_after: bool
    ) -> PromptComponent | None:
        """Return the component of a prompt, None for a marker that the grants do not allow."""
        if prompt.is_marker:
            if "positions" not in self._grants or prompt.identifier not in OWN:
                return None
            role = prompt.role if "roles" in self._grants else "system"
            return _build_component(
                prompt, prompt.key, number, enabled, content="", role=role, **_place_fields(prompt)
            )
        if prompt.position == "in_chat":
            if self._grants >= needed_grants(prompt, is_after=is_after) | {"roles"}:
                return _build_component(
                    prompt, prompt.key, number, enabled, **_place_fields(prompt)
                )
            return _build_contained(
                prompt, number, enabled, depth=prompt.depth, order=prompt.injection_order
            )
        if self._grants >= _text_grants(prompt, is_after=is_after):
            has_role = needed_grants(prompt, is_after=is_after) <= self._grants
            role = prompt.role if has_role else "user"
            return _build_component(prompt, prompt.key, number, enabled, role=role)
        depth = self._after_depth if is_after else MAX_DEPTH
        return _build_contained(prompt, number, enabled, depth=depth)

    def new_chat_component(self, preset: Preset) -> PromptComponent:
        """Return the component of the line that SillyTavern puts above the history."""
        line = PromptComponent(
            id=NEW_CHAT_ID,
            key=NEW_CHAT,
            name="New chat",
            content=preset.texts[NEW_CHAT_TEXT],
            trust="imported",
        )
        if "fields" in self._grants:
            return line.changed(role="system" if "roles" in self._grants else "user")
        return line.changed(
            role="user",
            placement="history",
            injection_depth=MAX_DEPTH,
            priority=CONTAINED_PRIORITY,
        )


def _build_component(
    prompt: PresetPrompt, key: str, number: int, enabled: bool, **fields: Any
) -> PromptComponent:
    return PromptComponent(
        **{
            "id": number,
            "key": key,
            "name": prompt.name or prompt.identifier[:200],
            "content": prompt.content,
            "role": prompt.role,
            "enabled": enabled,
            "trust": "imported",
            **fields,
        }
    )


def _build_contained(
    prompt: PresetPrompt, number: int, enabled: bool, *, depth: int, order: int = 100
) -> PromptComponent:
    """Build the component of a prompt that lacks its grant: a user message inside the history."""
    return _build_component(
        prompt,
        contained_key(prompt),
        number,
        enabled,
        role="user",
        placement="history",
        injection_depth=depth,
        injection_order=order,
        priority=CONTAINED_PRIORITY,
    )


def _place_fields(prompt: PresetPrompt) -> dict[str, Any]:
    """Return the placement, depth and order of a component as fields; empty if `relative`."""
    if prompt.position == "relative":
        return {}
    return {
        "placement": "history",
        "injection_depth": prompt.depth,
        "injection_order": prompt.injection_order,
    }
