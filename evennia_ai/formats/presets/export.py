"""A preset -> its file again, losing nothing: the stored original is walked, and only what differs
from it is written.

Unknown members, the lists that nothing reads, dangling lines of the order, prompts that no list
names, the order of members and each prompt's own stale `enabled` stay as they were. Secrets are not
there any more.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from evennia_ai.engine.prompt.components import ALL_GRANTS, Grants, PromptComponent
from evennia_ai.formats.presets.changes import with_changes
from evennia_ai.formats.presets.preset import (
    OLD_KEYS,
    ORDER_IN_USE,
    OWN,
    OrderItem,
    Preset,
    PresetPrompt,
    body_of,
    is_list_of_items,
    is_order_in_use,
    order_in,
    prompts_in,
)
from evennia_ai.formats.presets.reading import read_preset

Object = dict[str, Any]

# The fields of a prompt by the names they have in a file.
_FIELDS: Final[Mapping[str, str]] = {
    "name": "name",
    "content": "content",
    "role": "role",
    "position": "injection_position",
    "depth": "injection_depth",
    "injection_order": "injection_order",
    "triggers": "injection_trigger",
    "forbids_overrides": "forbid_overrides",
}


def exported(
    preset: Preset,
    changes: Iterable[PromptComponent] = (),
    *,
    grants: Grants = ALL_GRANTS,
    removed: Collection[str] = (),
) -> str:
    """The preset's file as JSON text, with what was switched in it and with the `changes` made.

    `changes` are components that now stand for the preset's own under these `grants`, by their
    keys, and new ones; `removed` the keys of those that are gone (`with_changes`).
    """
    changed = with_changes(preset, changes, grants=grants, removed=removed)
    return json.dumps(source_of(changed), ensure_ascii=False, allow_nan=False, indent=4) + "\n"


def kept_text(preset: Preset) -> str:
    """The file as it is kept: its JSON without secrets, as it was read."""
    return json.dumps(preset.source, ensure_ascii=False, allow_nan=False)


def source_of(preset: Preset) -> Mapping[str, Any]:
    """The preset's own JSON value with what differs from it."""
    before = read_preset(preset.source, name=preset.name)
    texts = {name: text for name, text in preset.texts.items() if text != before.texts[name]}
    source = _with_old_keys({**preset.source, **texts}, before, preset)
    body = dict(body_of(source))
    if (prompts := _prompts(before, preset)) != prompts_in(source):
        body["prompts"] = prompts
    if preset.order != before.order:
        body["prompt_order"] = _lists(body.get("prompt_order"), before, preset)
    return body if body_of(source) is source else {**source, "data": body}


def _with_old_keys(source: Object, before: Preset, preset: Preset) -> Object:
    """The file with the texts of own prompts in the members in which old files have them."""
    for identifier, name in OLD_KEYS.items():
        was, now = before.by_identifier[identifier], preset.by_identifier[identifier]
        if not was.is_in_file and name in source and was.content != now.content:
            source[name] = now.content
    return source


def _prompts(before: Preset, preset: Preset) -> list[Any]:
    """`prompts` with the fields that differ; what is new stands at the end."""
    now = {prompt.key: prompt for prompt in preset.prompts}
    read = iter(before.prompts)
    written: list[Any] = []
    for item in prompts_in(preset.source):
        was = next(read) if isinstance(item, Mapping) else None
        if was is None:
            written.append(item)
        elif was.key in now:
            written.append({**item, **_differing(was, now[was.key])})
    known = {prompt.key: prompt for prompt in before.prompts}
    for prompt in preset.prompts:
        if not prompt.is_in_file and known.get(prompt.key) != prompt:
            written += _added(prompt, known.get(prompt.key), preset)
    return written


def _added(prompt: PresetPrompt, was: PresetPrompt | None, preset: Preset) -> list[Object]:
    """A prompt that the file does not list, unless it has its text in an old member."""
    has_old_key = was is not None and OLD_KEYS.get(prompt.identifier) in preset.source
    if was is not None and has_old_key and _differing(was, prompt).keys() <= {"content"}:
        return []
    return [as_item(prompt)]


def as_item(prompt: PresetPrompt) -> Object:
    """A prompt as a file lists it, with all its fields."""
    return {
        "identifier": prompt.identifier,
        "system_prompt": prompt.identifier in OWN,
        "marker": prompt.is_marker,
        **{name: _as_json(prompt, attribute) for attribute, name in _FIELDS.items()},
    }


def _differing(was: PresetPrompt, now: PresetPrompt) -> Object:
    return {
        name: _as_json(now, attribute)
        for attribute, name in _FIELDS.items()
        if getattr(now, attribute) != getattr(was, attribute)
    }


def _as_json(prompt: PresetPrompt, attribute: str) -> Any:
    value = getattr(prompt, attribute)
    if attribute == "position":
        return int(value == "in_chat")
    return list(value) if isinstance(value, tuple) else value


def _lists(written: Any, before: Preset, preset: Preset) -> list[Any]:
    """`prompt_order` with the order in use written anew."""
    lists = written if isinstance(written, list) else []
    order = _order(order_in(preset.source) or [], before, preset)
    if is_list_of_items(lists):
        return order
    found = False
    made: list[Any] = []
    for one in lists:
        is_meant = not found and is_order_in_use(one)
        found = found or is_meant
        made.append({**one, "order": order} if is_meant else one)
    return made if found else [*made, {"character_id": ORDER_IN_USE, "order": order}]


def _order(items: list[Any], before: Preset, preset: Preset) -> list[Any]:
    """The lines of the order; those that name no prompt stay behind the line they follow."""
    lines, followers = _parted(items, before)
    named = {item.identifier for item in preset.order}
    made: list[Any] = followers.pop("", [])
    for item in preset.order:
        made.append(_line(lines.get(item.identifier), item))
        made += followers.get(item.identifier, [])
    return made + [one for name in followers if name not in named for one in followers[name]]


def _parted(items: list[Any], before: Preset) -> tuple[dict[str, Object], dict[str, list[Any]]]:
    """The lines that count, by identifier, and the others by the one that each follows."""
    lines: dict[str, Object] = {}
    followers: dict[str, list[Any]] = {}
    newest = ""
    for item in items:
        name = item.get("identifier") if isinstance(item, Mapping) else None
        if isinstance(name, str) and name in before.switches and name not in lines:
            lines[name] = item
            newest = name
        else:
            followers.setdefault(newest, []).append(item)
    return lines, followers


def _line(written: Object | None, item: OrderItem) -> Object:
    if written is None:
        return {"identifier": item.identifier, "enabled": item.enabled}
    is_on = written.get("enabled") is True
    return written if is_on == item.enabled else {**written, "enabled": item.enabled}
