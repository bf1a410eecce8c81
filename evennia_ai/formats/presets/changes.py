"""Apply the changes that builders made to a preset's components to the preset itself.

A component and the prompt of the preset that it came from have the same key. Each changed component
is compared with the component that the preset creates under its grants, and only the differences
change the prompt. So a prompt that is inside the history only because a grant is missing is
exported in its original place.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID, uuid5

from evennia_ai.engine.prompt.assembly.rules import NEW_CHAT
from evennia_ai.engine.prompt.components import HISTORY_ID, STATIC_IDS, Grants, PromptComponent
from evennia_ai.formats.presets.mapping import contained_key, preset_components
from evennia_ai.formats.presets.preset import (
    HISTORY,
    NEW_CHAT_TEXT,
    OWN,
    OrderItem,
    Preset,
    PresetPrompt,
)

# The UUID namespace for identifiers of new prompts. They are derived from the preset and the key of
# the component, so that repeated exports are equal.
_NAMESPACE: Final = UUID("5d1a3d4e-6f0b-4f0e-9a57-2c1f3b8e7d60")
_COPIED: Final = ("name", "content", "role")
# Fields of a component that a preset cannot store.
_NOT_WRITTEN: Final = (
    *("depth_counts", "description", "volatile", "priority", "required", "when", "scope", "trust"),
)
_PLAIN: Final = PromptComponent(id=1, key="plain")
# The values that components of a preset have in the fields that it cannot store. Changed values are
# reported as lost.
_USUAL: Final = {**{name: getattr(_PLAIN, name) for name in _NOT_WRITTEN}, "trust": "imported"}
# Keys of components that never become new prompts of a preset, because they belong to the game or
# to SillyTavern's own prompts.
_NO_PROMPTS: Final = frozenset({one.key for one in OWN.values()}.union(STATIC_IDS))


def apply_changes(
    preset: Preset,
    changes: Iterable[PromptComponent],
    *,
    grants: Grants,
    removed: Collection[str] = (),
) -> Preset:
    """Return the preset with the changes that builders made to its components.

    Args:
        changes: changed components, which replace those of the preset with the same key, and new
            ones, which become new prompts. Static components belong to the game and are left out.
        grants: the grants with which the preset's components were made.
        removed: keys of removed components. SillyTavern's own prompts cannot be removed, so they
            are switched off.
    """
    before = {one.key: one for one in preset_components(preset, grants=grants)}
    # A prompt without its grant has a component with another key, so both keys are tried.
    prompts = {
        contained if (contained := contained_key(one)) in before else one.key: one
        for one in preset.by_identifier.values()
    }
    now = dict(before)
    changed: dict[str, PresetPrompt] = {}
    texts = preset.texts
    for component in changes:
        key = component.key
        if key == NEW_CHAT:
            texts = {**texts, NEW_CHAT_TEXT: component.content}
            continue
        if key not in prompts and key not in _NO_PROMPTS:
            prompt = _new_prompt(component, preset)
        elif key in prompts and key in before:
            prompt = _changed_prompt(prompts[key], before[key], component)
        else:
            continue
        changed[prompt.identifier] = prompts[key] = prompt
        now[key] = component
    gone = {prompts[key].identifier for key in removed if key in prompts}
    by_identifier = {prompts[key].identifier: one for key, one in now.items() if key in prompts}
    return preset.changed(
        prompts=tuple(_changed_prompts(preset, changed, gone)),
        order=_changed_order(preset, by_identifier, before, gone),
        texts=texts,
    )


def list_unwritable(changes: Iterable[PromptComponent]) -> tuple[str, ...]:
    """Return a sentence for each changed component with settings that presets cannot store."""
    return tuple(
        f"'{one.key}': {', '.join(fields)} cannot be written in a preset and are left out"
        for one in changes
        if (fields := [name for name in _NOT_WRITTEN if getattr(one, name) != _USUAL[name]])
    )


def _changed_prompt(
    prompt: PresetPrompt, before: PromptComponent, now: PromptComponent
) -> PresetPrompt:
    names = ("role",) if prompt.is_marker else _COPIED
    fields: dict[str, Any] = {
        name: getattr(now, name) for name in names if getattr(now, name) != getattr(before, name)
    }
    has_moved = now.placement != before.placement
    if has_moved:
        fields["position"] = "in_chat" if now.placement == "history" else "relative"
    if now.placement == "history":
        if has_moved or now.injection_depth != before.injection_depth:
            fields["depth"] = now.injection_depth
        if now.injection_order != before.injection_order:
            fields["injection_order"] = now.injection_order
    return prompt.changed(**fields)


def _new_prompt(component: PromptComponent, preset: Preset) -> PresetPrompt:
    prompt = PresetPrompt(
        identifier=str(uuid5(_NAMESPACE, f"{preset.name}\n{component.key}")),
        key=component.key,
        name=component.name or component.key,
        content=component.content,
        role=component.role,
        is_in_file=False,
    )
    if component.placement != "history":
        return prompt
    return prompt.changed(
        position="in_chat",
        depth=component.injection_depth,
        injection_order=component.injection_order,
    )


def _changed_prompts(
    preset: Preset, changed: Mapping[str, PresetPrompt], gone: Collection[str]
) -> Iterator[PresetPrompt]:
    """Yield the prompts of a preset after the changes to its components.

    If several prompts have the same identifier, only the first is changed.
    """
    left = dict(changed)
    for prompt in preset.prompts:
        if prompt.identifier in gone and prompt.identifier not in OWN:
            continue
        yield left.pop(prompt.identifier, prompt)
    yield from left.values()


def _changed_order(
    preset: Preset,
    now: Mapping[str, PromptComponent],
    before: Mapping[str, PromptComponent],
    gone: Collection[str],
) -> tuple[OrderItem, ...]:
    """Return the order of a preset after the changes to its components.

    A prompt moves if the ID of its component changed. It is switched on if its component is
    enabled.
    """
    added = [OrderItem(name, True) for name in now if name not in preset.by_identifier]
    items = [
        _switched_item(item, now, gone)
        for item in (*preset.order, *added)
        if item.identifier not in gone or item.identifier in OWN
    ]
    known_ids = {key: one.id for key, one in before.items()}
    if all(known_ids.get(one.key) == one.id for one in now.values()):
        return tuple(items)
    places: dict[str, int] = {}
    place = 0
    for item in items:
        component = now.get(item.identifier)
        # A prompt without a component gets the sort key of the prompt before it, so the stable sort
        # keeps it there.
        place = HISTORY_ID if item.identifier == HISTORY else component.id if component else place
        places[item.identifier] = place
    return tuple(sorted(items, key=lambda item: places[item.identifier]))


def _switched_item(
    item: OrderItem, now: Mapping[str, PromptComponent], gone: Collection[str]
) -> OrderItem:
    if item.identifier in gone:
        return item._replace(enabled=False)
    component = now.get(item.identifier)
    return item if component is None else item._replace(enabled=component.enabled)
