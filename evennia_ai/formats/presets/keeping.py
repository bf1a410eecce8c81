"""What of a preset is kept for the export and has no effect here, in sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.formats.presets.preset import (
    OLD_KEYS,
    TEXT_DEFAULTS,
    Preset,
    body_of,
    is_list_of_items,
    is_order_in_use,
)

_MOST_NAMES: Final = 12
# Members that are numbers of a model's, which an NPC's own model profile says.
_SAMPLING: Final = (
    *("openai_max_context", "openai_max_tokens", "temperature", "top_p", "top_k", "top_a", "min_p"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "seed", "n"),
)
# Texts for what does not happen in a game: an NPC always answers an event.
_UNUSED_TEXTS: Final = (
    *("new_group_chat_prompt", "group_nudge_prompt", "continue_nudge_prompt"),
    *("impersonation_prompt", "assistant_prefill", "assistant_impersonation"),
    "human_sysprompt_message",
)
_READ: Final = frozenset(
    {"prompts", "prompt_order", "names_behavior", "names_in_completion", "extensions", "data"}
    | {"squash_system_messages", "wrap_in_quotes", "version", "type", *TEXT_DEFAULTS, *_SAMPLING}
    | {*OLD_KEYS.values()}
)
_CONNECTION: Final = ("chat_completion_source", "_model", "openrouter_", "azure_", "custom_")


def kept_without_effect(preset: Preset) -> Iterator[str]:
    """What is kept and does nothing, a sentence for each kind of it."""
    source = preset.source
    if sampling := [f"{name} {source[name]}" for name in _SAMPLING if _is_number(source, name)]:
        yield f"numbers for a model, which the NPC's own profile says: {', '.join(sampling)}"
    others = [name for name in source if name not in _READ]
    if models := [name for name in others if _is_connection(name)]:
        yield f"models and connections, never applied: {_few(models)}"
    if texts := [name for name in _UNUSED_TEXTS if source.get(name)]:
        yield f"texts for what does not happen in a game: {_few(texts)}"
    yield from _extensions(source.get("extensions"))
    if rest := [name for name in others if not _is_connection(name)]:
        yield f"other members: {_few(rest)}"
    if idle := _idle_lists(source):
        yield f"{idle} {'list' if idle == 1 else 'lists'} of order that nothing reads"


def _idle_lists(source: Mapping[str, Any]) -> int:
    lists = body_of(source).get("prompt_order")
    if not isinstance(lists, list) or is_list_of_items(lists):
        return 0
    return sum(not is_order_in_use(one) for one in lists)


def _extensions(extensions: Any) -> Iterator[str]:
    if not isinstance(extensions, Mapping):
        return
    scripts = extensions.get("regex_scripts")
    if isinstance(scripts, list) and scripts:
        yield f"regex scripts, never run: {len(scripts)}"
    if others := [name for name in extensions if name != "regex_scripts"]:
        yield f"data of other extensions: {_few(others)}"


def _is_number(source: Mapping[str, Any], name: str) -> bool:
    value = source.get(name)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_connection(name: str) -> bool:
    return any(part in name for part in _CONNECTION)


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(one_line(name)[:40] for name in names[:_MOST_NAMES]) + more
