"""What a preset gives the prompt: its prompts as components, its formats as rules of assembly.

Preset text knows macros only, whoever vouches for it. A preset may do what it was granted
(`evennia_ai.engine.prompt.components`):

    system_prompt  its main prompt stands first, where a card's system prompt may replace it
    fields         its other prompts stand before the history
    after_history  what its order has after the history stands there
    positions      texts of the card, the persona and lore stand where its order has them
    roles          its prompts speak as system or assistant, those texts in the role it gives them

Without a grant the text stands in the history as a user's: at its own depth, else at the top, what
follows the history near its end; and the card's texts stay where they are without a preset.

The list's order is that of the IDs. What precedes the character's description begins at 11, below
the game's own texts; that and what follows begins at 1061, so that the NPC's builder has said who
it is; what follows the history begins at 5001. IDs that are multiples of 10 are the engine's.
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
"""Prompts that may precede the description: the IDs below 1000 without multiples of 10."""
_DESCRIPTION: Final = "charDescription"
_HISTORY_COMPONENT: Final = next(one for one in STATIC_COMPONENTS if one.id == HISTORY_ID)
_OWN_TEXT_GRANTS: Final[dict[str, Grant]] = {MAIN: "system_prompt", JAILBREAK: "after_history"}


def preset_components(
    preset: Preset, *, grants: Grants, after_depth: int = AFTER_DEPTH
) -> tuple[PromptComponent, ...]:
    """The prompts that the order names as components, by ID; those switched off are disabled.

    The grant for the text itself lets the main prompt and the instructions for after the history
    speak as the system, as it lets a card's. Those that are places have no text: `with_texts` puts
    the texts there. `after_depth` is where what follows the history stands without the grant, in
    messages from the newest.
    """
    placing = _Placing(grants, after_depth)
    made = [
        placing.component(preset.by_identifier[item.identifier], number, item.enabled, is_after)
        for item, number, is_after in numbered(preset)
        if item.identifier != HISTORY
    ]
    made += [placing.new_chat(preset)]
    if "positions" in grants and not preset.is_on(HISTORY) and HISTORY in preset.switches:
        made += [_HISTORY_COMPONENT.changed(enabled=False)]
    return tuple(sorted((one for one in made if one is not None), key=lambda one: one.id))


def preset_assembly(preset: Preset) -> AssemblyRules:
    """How the preset has a prompt put together."""
    texts = preset.texts
    lore = texts["wi_format"]
    return replace(
        PRESETS["sillytavern"],
        example_heading=texts["new_example_chat_prompt"],
        scenario_format=_format(texts["scenario_format"], preset),
        personality_format=_format(texts["personality_format"], preset),
        lore_format=lore if LORE in lore else "",
        names=preset.names or PRESETS["sillytavern"].names,
        quote_user=preset.quotes,
        stand_in=texts["send_if_empty"],
        squash=preset.squash,
    )


def off_in(preset: Preset, generation: str) -> frozenset[str]:
    """The keys of the components that are left out of this kind of generation by their triggers.

    `normal` are an NPC's answers, `quiet` what is asked in the background.
    """
    return frozenset(
        key
        for prompt in preset.prompts
        if prompt.triggers and generation not in prompt.triggers
        for key in {prompt.key, contained_key(prompt)}
    )


def default_texts(preset: Preset, *, grants: Grants) -> dict[str, str]:
    """The texts that a card's own may replace, by the key of their component.

    They are `default_system_prompt` and `default_post_history` of `card_components`.
    """
    made = {one.key: one for one in preset_components(preset, grants=grants)}
    keys = (OWN[name].key for name in _OWN_TEXT_GRANTS)
    return {key: made[key].content for key in keys if key in made and made[key].enabled}


def with_texts(
    preset: Preset,
    texts: Iterable[PromptComponent],
    *,
    grants: Grants,
    after_depth: int = AFTER_DEPTH,
) -> tuple[PromptComponent, ...]:
    """The preset's components with the texts of card and persona at the places it has for them.

    `texts` are those components; text without a grant of its own stays where it is. A card's
    system prompt and its instructions replace the preset's, which were its defaults
    (`default_texts`), unless the preset forbids it. `after_depth` as in `preset_components`.
    """
    made = preset_components(preset, grants=grants, after_depth=after_depth)
    placed = {one.key: one for one in made}
    forbidden = {prompt.key for prompt in preset.by_identifier.values() if prompt.forbids_overrides}
    for text in texts:
        place = placed.get(text.key)
        if place is None or text.is_contained:
            placed[text.key] = text
        elif text.key not in forbidden:
            placed[text.key] = _at_place(text, place, grants)
    return tuple(sorted(placed.values(), key=lambda one: one.id))


def _format(text: str, preset: Preset) -> str | None:
    """A format; an empty one leaves the field bare from SillyTavern 1.13 on, and out before."""
    return None if not text.strip() and preset.is_of_1_13 else text


def _at_place(text: PromptComponent, place: PromptComponent, grants: Grants) -> PromptComponent:
    """A text at a preset's place, in the role it has there where the preset may say that."""
    return text.changed(
        id=place.id,
        role=place.role if "roles" in grants else text.role,
        enabled=place.enabled,
        placement=place.placement,
        injection_depth=place.injection_depth,
        injection_order=place.injection_order,
    )


def needed_grants(prompt: PresetPrompt, *, is_after: bool) -> Grants:
    """What a prompt needs to stand where it asks to, as who it asks to."""
    if prompt.is_marker:
        roles: Grants = frozenset() if prompt.role == "system" else frozenset({"roles"})
        return roles | {"positions"}
    needed = _text_grants(prompt, is_after=is_after)
    is_own = prompt.identifier in _OWN_TEXT_GRANTS and prompt.role == "system"
    if prompt.role == "user" or (is_own and prompt.position == "relative"):
        return needed
    return needed | {"roles"}


def _text_grants(prompt: PresetPrompt, *, is_after: bool) -> Grants:
    """The grants for the place of a text, and for what a card may replace wherever it stands."""
    own = _OWN_TEXT_GRANTS.get(prompt.identifier)
    needed: set[Grant] = set() if own is None else {own}
    if prompt.position == "relative" and is_after:
        needed.add("after_history")
    elif prompt.position == "relative" and prompt.identifier != MAIN:
        needed.add("fields")
    return frozenset(needed)


def numbered(preset: Preset) -> Iterator[tuple[OrderItem, int, bool]]:
    """The items of the order, each with its ID and whether it follows the history.

    A place that the order does not name is at the very end, where the application puts it.
    """
    order = [*preset.order, *_unnamed_places(preset)]
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


def _unnamed_places(preset: Preset) -> list[OrderItem]:
    return [
        OrderItem(name, True)
        for name, own in OWN.items()
        if own.is_marker and name != HISTORY and name not in preset.switches
    ]


def _free_ids(first: int) -> Iterator[int]:
    return (number for number in range(first, 10**6) if number % 10)


def contained_key(prompt: PresetPrompt) -> str:
    """The key of a text that no card may replace, because nobody vouches for it."""
    return f"st_{prompt.identifier}" if prompt.identifier in _OWN_TEXT_GRANTS else prompt.key


class _Placing:
    """Makes components of prompts under the grants that a preset has."""

    def __init__(self, grants: Grants, after_depth: int) -> None:
        self._grants = grants
        self._after_depth = after_depth

    def component(
        self, prompt: PresetPrompt, number: int, enabled: bool, is_after: bool
    ) -> PromptComponent | None:
        """The component of a prompt, None for a place that it may not move."""
        if prompt.is_marker:
            if "positions" not in self._grants or prompt.identifier not in OWN:
                return None
            role = prompt.role if "roles" in self._grants else "system"
            return _made(
                prompt, prompt.key, number, enabled, content="", role=role, **_spot(prompt)
            )
        if prompt.position == "in_chat":
            if self._grants >= needed_grants(prompt, is_after=is_after) | {"roles"}:
                return _made(prompt, prompt.key, number, enabled, **_spot(prompt))
            return _contained(
                prompt, number, enabled, depth=prompt.depth, order=prompt.injection_order
            )
        if self._grants >= _text_grants(prompt, is_after=is_after):
            has_role = needed_grants(prompt, is_after=is_after) <= self._grants
            role = prompt.role if has_role else "user"
            return _made(prompt, prompt.key, number, enabled, role=role)
        depth = self._after_depth if is_after else MAX_DEPTH
        return _contained(prompt, number, enabled, depth=depth)

    def new_chat(self, preset: Preset) -> PromptComponent:
        """The line above the history."""
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


def _made(
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


def _contained(
    prompt: PresetPrompt, number: int, enabled: bool, *, depth: int, order: int = 100
) -> PromptComponent:
    """The prompt where text without a grant may stand."""
    return _made(
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


def _spot(prompt: PresetPrompt) -> dict[str, Any]:
    """Where a prompt in the chat stands."""
    if prompt.position == "relative":
        return {}
    return {
        "placement": "history",
        "injection_depth": prompt.depth,
        "injection_order": prompt.injection_order,
    }
