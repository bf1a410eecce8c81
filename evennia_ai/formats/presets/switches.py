"""The switches of a SillyTavern preset, which decide which of its prompts are sent."""

from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import suggest_name
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.formats.presets.preset import HISTORY, KIND, OrderItem, Preset, PresetPrompt

_MOST_MEANT: Final = 5
# The attributes by which people may name a prompt, in the order in which they are compared.
_CALLED: Final = (attrgetter("name"), attrgetter("key"), attrgetter("identifier"))


class Switch(NamedTuple):
    """One line of a preset's list of prompts, as SillyTavern shows it."""

    identifier: str
    name: str
    key: str
    is_on: bool
    is_marker: bool
    role: Role
    depth: int | None
    """The prompt's depth in the chat; None if its place in the list decides."""
    tokens: int


def switch_prompt(preset: Preset, wanted: str, on: bool) -> Preset:
    """Return a preset with one prompt, given by its identifier or name, switched on or off.

    A prompt that the order lacks is added at its end, as in SillyTavern.

    Raises:
        FormatError: no prompt has this name, or several have it.
    """
    identifier = find_prompt(preset, wanted).identifier
    if identifier not in preset.switches:
        return preset.changed(order=(*preset.order, OrderItem(identifier, True))) if on else preset
    order = tuple(
        item._replace(enabled=on) if item.identifier == identifier else item
        for item in preset.order
    )
    return preset.changed(order=order)


def find_prompt(preset: Preset, wanted: str) -> PresetPrompt:
    """Return a preset's prompt by its identifier, else by its name in any letter case.

    Raises:
        FormatError: no prompt has this name, or several have it.
    """
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


def list_switches(preset: Preset, *, counter: TokenCounter = ESTIMATE) -> tuple[Switch, ...]:
    """Return a line for each prompt in the order of a preset, as SillyTavern lists them."""
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
    """Render the list of a preset's prompts as lines of text, numbered from 1."""
    lines = []
    for number, one in enumerate(list_switches(preset, counter=counter), 1):
        depth = "" if one.depth is None else f" @{one.depth}"
        size = "a place" if one.is_marker else f"{one.tokens} tokens"
        about = "the conversation" if one.identifier == HISTORY else f"{one.role}{depth}, {size}"
        line = f"{number:4} {'[x]' if one.is_on else '[ ]'} {one.name} ({about})"
        lines.append(clip_text(escape_controls(line), WIDTH))
    return lines
