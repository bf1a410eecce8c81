"""Export a preset: the JSON of its imported file with only the changes written into it.

Everything else is unchanged: unknown members, orders that SillyTavern ignores, lines of the order
without a prompt, prompts outside the order, the order of members, and outdated flags. Secrets were
already removed when the file was read.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Literal

from evennia_ai.engine.prompt.components import ALL_GRANTS, Grants, PromptComponent
from evennia_ai.formats.presets.changes import apply_changes
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
Form = Literal["preset", "prompts"]
FORMS: Final[tuple[Form, ...]] = ("preset", "prompts")
"""The formats of an export.

`preset` is a preset as SillyTavern saves it today, `prompts` an export of its prompt manager.
"""

# Maps the attributes of `PresetPrompt` to the names of their members in a file.
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


def dump_preset(
    preset: Preset,
    changes: Iterable[PromptComponent] = (),
    *,
    grants: Grants = ALL_GRANTS,
    removed: Collection[str] = (),
) -> str:
    """Return a preset's file as JSON text, with all changes that builders made.

    Args:
        changes: changed and new components, as in `apply_changes`.
        grants: the grants with which the preset's components were made.
        removed: keys of removed components.
    """
    changed = apply_changes(preset, changes, grants=grants, removed=removed)
    return json.dumps(edited_source(changed), ensure_ascii=False, allow_nan=False, indent=4) + "\n"


def stored_text(preset: Preset) -> str:
    """Return the JSON text that is stored for a preset: its file as read, without secrets."""
    return json.dumps(preset.source, ensure_ascii=False, allow_nan=False)


def convert_preset(preset: Preset, form: Form) -> Mapping[str, Any]:
    """Return the preset's JSON value in one of SillyTavern's two formats.

    The format `prompts` cannot hold the settings or SillyTavern's own prompts.
    """
    source = edited_source(preset)
    body = body_of(source)
    items = [{"identifier": item.identifier, "enabled": item.enabled} for item in preset.order]
    listed = [one for one in prompts_in(source) if isinstance(one, Mapping)]
    if form == "prompts":
        free = [
            one
            for one in listed
            if not (one.get("system_prompt") or one.get("marker") or _identifier(one) in OWN)
        ]
        data = {"prompts": free, "prompt_order": items}
        return {"version": 1, "type": "full", "data": data}
    rest = dict(source) if body is source else {}
    # remove outdated members, whose values are now in the current members
    for old in (*OLD_KEYS.values(), "names_in_completion"):
        rest.pop(old, None)
    if source.get("names_in_completion") is True:
        rest.setdefault("names_behavior", 1)
    names = set(map(_identifier, listed))
    own = [preset.by_identifier[name] for name in OWN if name not in names]
    written = body.get("prompt_order") if body is source else None
    lists = written if isinstance(written, list) else []
    if not lists or order_in(source) is None:
        # Keep the orders of other characters, and only add the order that SillyTavern uses.
        lists = [*lists, {"character_id": ORDER_IN_USE, "order": items}]
    return {
        **rest,
        "prompts": [*prompts_in(source), *map(_prompt_as_json, own)],
        "prompt_order": lists,
    }


def _identifier(item: Mapping[str, Any]) -> str:
    """Return the identifier of a raw prompt or of a raw line of an order, "" if it has none."""
    identifier = item.get("identifier")
    return identifier if isinstance(identifier, str) else ""


def edited_source(preset: Preset) -> Mapping[str, Any]:
    """Return the JSON value of a preset's file with the changes to the preset written into it."""
    before = read_preset(preset.source, name=preset.name)
    texts = {name: text for name, text in preset.texts.items() if text != before.texts[name]}
    source: Object = {**preset.source, **texts}
    # old files keep the texts of SillyTavern's own prompts in the members of `OLD_KEYS`
    for identifier, name in OLD_KEYS.items():
        was, now = before.by_identifier[identifier], preset.by_identifier[identifier]
        if not was.is_in_file and name in source and was.content != now.content:
            source[name] = now.content
    body = dict(body_of(source))
    if (prompts := _edited_prompts(before, preset)) != prompts_in(source):
        body["prompts"] = prompts
    if preset.order != before.order:
        body["prompt_order"] = _edited_lists(body.get("prompt_order"), before, preset)
    return body if body_of(source) is source else {**source, "data": body}


def _edited_prompts(before: Preset, preset: Preset) -> list[Any]:
    """Return the member `prompts` of a file with changed fields and new prompts written."""
    now = {prompt.key: prompt for prompt in preset.prompts}
    read = iter(before.prompts)
    written: list[Any] = []
    for item in prompts_in(preset.source):
        was = next(read) if isinstance(item, Mapping) else None
        # the prompt in the file is not an object, so `read_preset` has skipped it too
        if was is None:
            written.append(item)
        elif was.key in now:
            written.append({**item, **_changed_fields(was, now[was.key])})
    known = {prompt.key: prompt for prompt in before.prompts}
    for prompt in preset.prompts:
        was = known.get(prompt.key)
        if prompt.is_in_file or was == prompt:
            continue
        has_old_key = was is not None and OLD_KEYS.get(prompt.identifier) in preset.source
        if was is not None and has_old_key and _changed_fields(was, prompt).keys() <= {"content"}:
            # `edited_source` has already written this prompt's text into its outdated member
            # (`OLD_KEYS`)
            continue
        written.append(_prompt_as_json(prompt))
    return written


def _prompt_as_json(prompt: PresetPrompt) -> Object:
    """Return a prompt as the JSON object that preset files use, with all its fields."""
    return {
        "identifier": prompt.identifier,
        "system_prompt": prompt.identifier in OWN,
        "marker": prompt.is_marker,
        **{name: _field_as_json(prompt, attribute) for attribute, name in _FIELDS.items()},
    }


def _changed_fields(was: PresetPrompt, now: PresetPrompt) -> Object:
    return {
        name: _field_as_json(now, attribute)
        for attribute, name in _FIELDS.items()
        if getattr(now, attribute) != getattr(was, attribute)
    }


def _field_as_json(prompt: PresetPrompt, attribute: str) -> Any:
    value = getattr(prompt, attribute)
    if attribute == "position":
        return int(value == "in_chat")
    return list(value) if isinstance(value, tuple) else value


def _edited_lists(written: Any, before: Preset, preset: Preset) -> list[Any]:
    """Return the member `prompt_order` of a file with the order of the preset written into it."""
    lists = written if isinstance(written, list) else []
    order = _edited_order(order_in(preset.source) or [], before, preset)
    if is_list_of_items(lists):
        return order
    found = False
    edited: list[Any] = []
    for one in lists:
        is_in_use = not found and is_order_in_use(one)
        found = found or is_in_use
        edited.append({**one, "order": order} if is_in_use else one)
    return edited if found else [*edited, {"character_id": ORDER_IN_USE, "order": order}]


def _edited_order(items: list[Any], before: Preset, preset: Preset) -> list[Any]:
    """Return the raw lines of an order after the changes to the preset.

    A line without effect stays after the line that precedes it in the file.
    """
    lines: dict[str, Object] = {}
    followers: dict[str, list[Any]] = {}
    newest = ""
    for item in items:
        name = _identifier(item) if isinstance(item, Mapping) else ""
        if name in before.switches and name not in lines:
            lines[name] = item
            newest = name
        else:
            followers.setdefault(newest, []).append(item)
    named = {item.identifier for item in preset.order}
    edited: list[Any] = followers.pop("", [])
    for order_item in preset.order:
        edited.append(_edited_line(lines.get(order_item.identifier), order_item))
        edited += followers.get(order_item.identifier, [])
    return edited + [one for name in followers if name not in named for one in followers[name]]


def _edited_line(written: Object | None, item: OrderItem) -> Object:
    if written is None:
        return {"identifier": item.identifier, "enabled": item.enabled}
    is_on = written.get("enabled") is True
    return written if is_on == item.enabled else {**written, "enabled": item.enabled}
