"""What builders changed of a preset in a game, taken back into the preset.

A component that stands for one of the preset's, by its key, is compared with the one that the
preset gives under its grants: what differs is a change of the prompt, and nothing else is. So a
prompt that stands in the history for want of a grant is not exported as one.
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

# Of a new prompt the identifier is made of what it is called, so that two exports are equal.
_NAMESPACE: Final = UUID("5d1a3d4e-6f0b-4f0e-9a57-2c1f3b8e7d60")
_COPIED: Final = ("name", "content", "role")
_NOT_WRITTEN: Final = (
    *("depth_counts", "description", "volatile", "priority", "required", "scope", "trust"),
)


def with_changes(
    preset: Preset,
    changes: Iterable[PromptComponent],
    *,
    grants: Grants,
    removed: Collection[str] = (),
) -> Preset:
    """The preset with the components that now stand for its own, and with new ones as new prompts.

    `removed` are the keys of components that are gone; the application's own prompts cannot be
    removed and are switched off. Static components are the game's and are left out.
    """
    before = {one.key: one for one in preset_components(preset, grants=grants)}
    prompts = {_key_under(one, before): one for one in preset.by_identifier.values()}
    now = dict(before)
    made: dict[str, PresetPrompt] = {}
    texts = preset.texts
    for component in changes:
        key = component.key
        if key == NEW_CHAT:
            texts = {**texts, NEW_CHAT_TEXT: component.content}
        elif prompt := _prompt_now(component, prompts.get(key), before.get(key), preset):
            made[prompt.identifier] = prompts[key] = prompt
            now[key] = component
    gone = {prompts[key].identifier for key in removed if key in prompts}
    standing = {prompts[key].identifier: one for key, one in now.items() if key in prompts}
    return preset.changed(
        prompts=tuple(_prompts(preset, made, gone)),
        order=_order(preset, standing, before, gone),
        texts=texts,
    )


def _prompt_now(
    component: PromptComponent,
    prompt: PresetPrompt | None,
    before: PromptComponent | None,
    preset: Preset,
) -> PresetPrompt | None:
    """The prompt that a component is now, None for one that is none of a preset's."""
    if prompt is not None:
        return _changed(prompt, before, component) if before is not None else None
    return None if component.key in _NO_PROMPTS else _new_prompt(component, preset)


_NO_PROMPTS: Final = frozenset({one.key for one in OWN.values()}.union(STATIC_IDS))


def not_written(changes: Iterable[PromptComponent]) -> tuple[str, ...]:
    """What of the changed components a preset has no word for, a sentence each."""
    return tuple(
        f"'{one.key}': {', '.join(fields)} cannot be said in a preset and stay behind"
        for one in changes
        if (fields := [name for name in _NOT_WRITTEN if _is_said(one, name)])
    )


def _is_said(component: PromptComponent, name: str) -> bool:
    """Whether a field of a component is otherwise than in what a preset gives."""
    usual = "imported" if name == "trust" else _PLAIN_COMPONENT[name]
    return bool(getattr(component, name) != usual)


_PLAIN: Final = PromptComponent(id=1, key="plain")
_PLAIN_COMPONENT: Final = {name: getattr(_PLAIN, name) for name in _NOT_WRITTEN}


def _key_under(prompt: PresetPrompt, before: Mapping[str, PromptComponent]) -> str:
    """The key that a prompt's component has under the grants it was made with."""
    contained = contained_key(prompt)
    return contained if contained in before else prompt.key


def _changed(prompt: PresetPrompt, before: PromptComponent, now: PromptComponent) -> PresetPrompt:
    """The prompt with what differs now."""
    names = ("role",) if prompt.is_marker else _COPIED
    fields = {
        name: getattr(now, name) for name in names if getattr(now, name) != getattr(before, name)
    }
    return prompt.changed(**fields, **_moved(before, now))


def _moved(before: PromptComponent, now: PromptComponent) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if now.placement != before.placement:
        fields["position"] = "in_chat" if now.placement == "history" else "relative"
    if now.placement == "history":
        if fields or now.injection_depth != before.injection_depth:
            fields["depth"] = now.injection_depth
        if now.injection_order != before.injection_order:
            fields["injection_order"] = now.injection_order
    return fields


def _new_prompt(component: PromptComponent, preset: Preset) -> PresetPrompt:
    in_chat = component.placement == "history"
    prompt = PresetPrompt(
        identifier=str(uuid5(_NAMESPACE, f"{preset.name}\n{component.key}")),
        key=component.key,
        name=component.name or component.key,
        content=component.content,
        role=component.role,
        is_in_file=False,
    )
    if not in_chat:
        return prompt
    return prompt.changed(
        position="in_chat",
        depth=component.injection_depth,
        injection_order=component.injection_order,
    )


def _prompts(
    preset: Preset, made: Mapping[str, PresetPrompt], gone: Collection[str]
) -> Iterator[PresetPrompt]:
    """The prompts as they are now; of doubles the first is the one that changed."""
    left = dict(made)
    for prompt in preset.prompts:
        if prompt.identifier in gone and prompt.identifier not in OWN:
            continue
        yield left.pop(prompt.identifier, prompt)
    yield from left.values()


def _order(
    preset: Preset,
    now: Mapping[str, PromptComponent],
    before: Mapping[str, PromptComponent],
    gone: Collection[str],
) -> tuple[OrderItem, ...]:
    """The order as it is now: moved where an ID changed, switched where a component was."""
    items = [*preset.order, *(OrderItem(one, True) for one in now if _is_added(one, preset))]
    items = [item for item in items if item.identifier not in gone or item.identifier in OWN]
    items = [_switched(item, now, gone) for item in items]
    if not any(_has_moved(one, before) for one in now.values()):
        return tuple(items)
    places: dict[str, int] = {}
    place = 0
    for item in items:
        component = now.get(item.identifier)
        place = HISTORY_ID if item.identifier == HISTORY else component.id if component else place
        places[item.identifier] = place
    return tuple(sorted(items, key=lambda item: places[item.identifier]))


def _is_added(identifier: str, preset: Preset) -> bool:
    return identifier not in preset.by_identifier


def _has_moved(component: PromptComponent, before: Mapping[str, PromptComponent]) -> bool:
    known = before.get(component.key)
    return known is None or known.id != component.id


def _switched(
    item: OrderItem, now: Mapping[str, PromptComponent], gone: Collection[str]
) -> OrderItem:
    if item.identifier in gone:
        return item._replace(enabled=False)
    component = now.get(item.identifier)
    return item if component is None else item._replace(enabled=component.enabled)
