"""The two forms of file that SillyTavern knows, each made of either."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from evennia_ai.formats.presets.export import as_item, source_of
from evennia_ai.formats.presets.preset import (
    OLD_KEYS,
    ORDER_IN_USE,
    OWN,
    Preset,
    body_of,
    order_in,
    prompts_in,
)

Form = Literal["preset", "prompts"]
FORMS: Final[tuple[Form, ...]] = ("preset", "prompts")
"""`preset`: a preset, as it is saved today. `prompts`: an export of the prompt manager."""


def in_form(preset: Preset, form: Form) -> Mapping[str, Any]:
    """The preset's JSON value in a form; what the form has no word for stays behind."""
    return as_preset(preset) if form == "preset" else as_prompts(preset)


def as_preset(preset: Preset) -> Mapping[str, Any]:
    """A preset file with all own prompts and the order in use; old members in their new places."""
    source = source_of(preset)
    body = body_of(source)
    rest = dict(source) if body is source else {}
    for old in (*OLD_KEYS.values(), "names_in_completion"):
        rest.pop(old, None)
    if source.get("names_in_completion") is True:
        rest.setdefault("names_behavior", 1)
    there = {one.get("identifier") for one in prompts_in(source) if isinstance(one, Mapping)}
    own = [preset.by_identifier[name] for name in OWN if name not in there]
    written = body.get("prompt_order") if body is source else None
    lists = written if isinstance(written, list) else []
    if not lists or order_in(source) is None:
        lists = [*lists, _order_in_use(preset)]  # the orders of other characters are kept
    return {
        **rest,
        "prompts": [*prompts_in(source), *map(as_item, own)],
        "prompt_order": lists,
    }


def as_prompts(preset: Preset) -> Mapping[str, Any]:
    """The prompts that are nobody's own, as the prompt manager exports them, and a flat order."""
    source = source_of(preset)
    prompts = [one for one in prompts_in(source) if isinstance(one, Mapping) and _is_free(one)]
    items = _order_in_use(preset)["order"]
    return {
        "version": 1,
        "type": "full",
        "data": {"prompts": prompts, "prompt_order": items},
    }


def _is_free(item: Mapping[str, Any]) -> bool:
    return not (item.get("system_prompt") or item.get("marker") or item.get("identifier") in OWN)


def _order_in_use(preset: Preset) -> dict[str, Any]:
    items = [{"identifier": item.identifier, "enabled": item.enabled} for item in preset.order]
    return {"character_id": ORDER_IN_USE, "order": items}
