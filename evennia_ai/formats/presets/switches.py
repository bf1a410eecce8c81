"""The switches of a preset: which of its prompts are sent. They are how authors use one."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import suggest_name
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.engine.text.columns import WIDTH, clipped, visible
from evennia_ai.formats.presets.preset import HISTORY, KIND, OrderItem, Preset, PresetPrompt

_MOST_MEANT: Final = 5
# What a prompt may be called by, in the order in which it is tried.
_CALLED: Final = (attrgetter("name"), attrgetter("key"), attrgetter("identifier"))


class Switch(NamedTuple):
    """One line of the application's list."""

    identifier: str
    name: str
    key: str
    is_on: bool
    is_marker: bool
    role: Role
    depth: int | None
    """Its depth in the chat, None for one that stands by its place in the list."""
    tokens: int


def switched(preset: Preset, wanted: str, on: bool) -> Preset:
    """The preset with one prompt switched on or off, meant by its identifier or its name.

    A prompt that the order does not name is added at its end, as the application does it.
    FormatError: no prompt is called so, or several are.
    """
    identifier = meant(preset, wanted).identifier
    if identifier not in preset.switches:
        return preset.changed(order=(*preset.order, OrderItem(identifier, True))) if on else preset
    order = tuple(
        item._replace(enabled=on) if item.identifier == identifier else item
        for item in preset.order
    )
    return preset.changed(order=order)


def with_switches(preset: Preset, switched_on: Mapping[str, bool]) -> Preset:
    """The preset with prompts switched by their identifiers, as far as it has them."""
    for identifier, on in switched_on.items():
        if identifier in preset.by_identifier:
            preset = switched(preset, identifier, on)
    return preset


def meant(preset: Preset, wanted: str) -> PresetPrompt:
    """The prompt of this identifier, else of this name, in any case; FormatError where none is."""
    by_identifier = preset.by_identifier
    if wanted in by_identifier:
        return by_identifier[wanted]
    folded = wanted.strip().casefold()
    prompts = by_identifier.values()
    for called in _CALLED:
        found = [one for one in prompts if called(one).strip().casefold() == folded]
        if len(found) == 1:
            return found[0]
        if found:
            named = ", ".join(one_line(one.identifier) for one in found[:_MOST_MEANT])
            raise FormatError(
                KIND,
                f"preset {preset.name}: {len(found)} prompts are called '{one_line(wanted)}'; name"
                f" one by its identifier: {named}",
            )
    hint = suggest_name(wanted, [one.name for one in prompts]) or "; list them first"
    raise FormatError(KIND, f"preset {preset.name}: there is no prompt '{one_line(wanted)}'{hint}")


def switches(preset: Preset, *, counter: TokenCounter = ESTIMATE) -> tuple[Switch, ...]:
    """The list as the application shows it: the prompts of the order, on or off."""
    prompts = (preset.by_identifier[item.identifier] for item in preset.order)
    return tuple(
        Switch(
            identifier=prompt.identifier,
            name=prompt.name or prompt.identifier,
            key=prompt.key,
            is_on=preset.is_on(prompt.identifier),
            is_marker=prompt.is_marker,
            role=prompt.role,
            depth=prompt.depth if prompt.position == "in_chat" else None,
            tokens=0 if prompt.is_marker else counter.count(prompt.content),
        )
        for prompt in prompts
    )


def switch_lines(preset: Preset, *, counter: TokenCounter = ESTIMATE) -> list[str]:
    """The list in lines, numbered from 1."""
    return [
        clipped(visible(_line(number, one)), WIDTH)
        for number, one in enumerate(switches(preset, counter=counter), 1)
    ]


def _line(number: int, one: Switch) -> str:
    mark = "[x]" if one.is_on else "[ ]"
    if one.identifier == HISTORY:
        return f"{number:4} {mark} {one.name} (the conversation)"
    where = "" if one.depth is None else f" @{one.depth}"
    told = "a place" if one.is_marker else f"{one.tokens} tokens"
    return f"{number:4} {mark} {one.name} ({one.role}{where}, {told})"
