"""The report of a preset before anybody approves it: values, and those as JSON or as lines.

It says what becomes which component and where it stands, what is switched off, which macros nobody
here knows, what asks for the system role or a place after the history, which secrets were dropped,
and what is kept for the export and has no effect. Nothing is stored.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    DEFAULT_ORDER,
    NO_GRANTS,
    Grant,
    Grants,
    PromptComponent,
    in_order,
)
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.templates.unknown import unknown_macros
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.engine.text.columns import WIDTH, clipped, visible
from evennia_ai.formats.cards.components import DEFAULT_DEPTH
from evennia_ai.formats.cards.report.import_report import (
    GrantUse,
    cut_lines,
    grant_lines,
    item_lines,
    titled_lines,
    warning_lines,
)
from evennia_ai.formats.cards.report.parts import place_of
from evennia_ai.formats.cards.suspicions import Suspicion, find_in_text, group_sightings
from evennia_ai.formats.presets.keeping import kept_without_effect
from evennia_ai.formats.presets.mapping import (
    contained_key,
    needed_grants,
    numbered,
    preset_assembly,
    preset_components,
)
from evennia_ai.formats.presets.preset import HISTORY, SENT_TEXTS, Preset, PresetPrompt

_MOST_PARTS: Final = 40
# What each grant gives a preset that has a use for it.
_GIVES: Final[Mapping[Grant, str]] = {
    "system_prompt": "its main prompt stands after the game's rules, where a card may replace it",
    "fields": "its prompts stand before the history",
    "after_history": "its prompts for after the history stand there",
    "positions": "texts of the card, the persona and lore stand where its order has them",
    "roles": "its prompts speak as system or assistant",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A prompt that the order names: as which component, and where it stands.

    `place` is where it stands with the grants given, "" for a text of others that it may not move;
    `granted` where it would stand with `grants`, both empty where nothing is missing.
    """

    identifier: str
    name: str
    key: str
    id: int
    """The ID of its component, that with all grants where it has none."""
    enabled: bool
    is_marker: bool
    role: Role
    """The role that it asks for."""
    depth: int | None
    """Its depth in the chat, None for one that stands by its place in the list."""
    injection_order: int
    triggers: tuple[str, ...]
    tokens: int
    place: str
    granted: str = ""
    grants: tuple[Grant, ...] = ()
    """Those that it lacks."""
    needed: tuple[Grant, ...] = ()
    """Those that it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroUse:
    """A macro that nobody here knows: it is sent as it is written."""

    macro: str
    texts: int
    """In how many prompts of the order and formats it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetReport:
    """What a preset is, what becomes of everything in it, and what to look at first."""

    name: str
    size_bytes: int | None
    grants: Grants
    counter: str
    tokens_on: int
    """Tokens of the prompts that are switched on."""
    parts: tuple[PromptPart, ...]
    unnamed: tuple[str, ...]
    """The names of prompts that no order names: they are kept, and not sent."""
    rules: Mapping[str, Any]
    """The rules of assembly that it sets."""
    asks: tuple[str, ...]
    """What asks for the system role, or a place outside the history, a sentence each."""
    unknown_macros: tuple[MacroUse, ...]
    secrets: tuple[str, ...]
    """The names of the secrets that were dropped."""
    kept: tuple[str, ...]
    """What is kept for the export and has no effect, a sentence each."""
    uses: tuple[GrantUse, ...]
    suspicions: tuple[Suspicion, ...]
    notices: tuple[str, ...]


def preset_report(
    preset: Preset,
    *,
    grants: Grants = NO_GRANTS,
    counter: TokenCounter = ESTIMATE,
    size_bytes: int | None = None,
    after_depth: int = DEFAULT_DEPTH,
) -> PresetReport:
    """The report of a preset with these grants; `size_bytes` is the file's.

    `after_depth` is where what follows the history stands without the grant.
    """
    now = preset_components(preset, grants=grants, after_depth=after_depth)
    parts = tuple(_parts(preset, now, grants, counter))
    prompts = [preset.by_identifier[item.identifier] for item in preset.order]
    return PresetReport(
        name=preset.name,
        size_bytes=size_bytes,
        grants=grants,
        counter=counter.name,
        tokens_on=sum(part.tokens for part in parts if part.enabled),
        parts=parts,
        unnamed=tuple(_unnamed(preset)),
        rules=preset_assembly(preset).changed,
        asks=tuple(_asks(parts)),
        unknown_macros=_macros(
            [*(one.content for one in prompts), *map(preset.texts.__getitem__, SENT_TEXTS)]
        ),
        secrets=preset.secrets,
        kept=tuple(kept_without_effect(preset)),
        uses=tuple(_uses(parts, grants)),
        suspicions=group_sightings(
            raised
            for prompt in prompts
            for raised in find_in_text(
                prompt.content, f"prompt '{prompt.name or prompt.identifier}'"
            )
        ),
        notices=preset.notices,
    )


def report_object(report: PresetReport) -> dict[str, Any]:
    """The report as the object that `--json` prints; see docs/reference/cli.md."""
    values = asdict(report)
    warnings = [{**asdict(one), "text": one.text} for one in report.suspicions]
    values.pop("suspicions")
    return {**values, "grants": list(in_order(report.grants)), "warnings": warnings}


def report_lines(report: PresetReport) -> list[str]:
    """The report in lines of at most `WIDTH` columns; long lists are cut and say so."""
    macros = [f"{one.macro} in {_count(one.texts, 'text')}" for one in report.unknown_macros]
    rules = [f"{name}: {value!r}" for name, value in report.rules.items()]
    secrets = [f"{name} was in the file and was dropped" for name in report.secrets]
    sections = (
        _head(report),
        _part_lines(report),
        titled_lines("How a prompt is put together", rules),
        titled_lines("Prompts that no order names, kept and not sent", report.unnamed),
        titled_lines("It asks for", report.asks),
        titled_lines("Macros that nobody here knows, sent as they are written", macros),
        titled_lines("Secrets", secrets),
        titled_lines("Kept for the export, without effect", report.kept),
        titled_lines("Notices", report.notices),
        warning_lines(report.suspicions, kind="preset"),
        grant_lines(report.uses),
    )
    return [line for section in sections for line in section]


def _parts(
    preset: Preset, made: Iterable[PromptComponent], grants: Grants, counter: TokenCounter
) -> Iterator[PromptPart]:
    now = {one.key: one for one in made}
    full = {one.key: one for one in preset_components(preset, grants=ALL_GRANTS)}
    for item, _, is_after in numbered(preset):
        prompt = preset.by_identifier[item.identifier]
        if item.identifier == HISTORY or prompt.key not in full:
            continue
        yield _part(
            prompt,
            now.get(prompt.key) or now.get(contained_key(prompt)),
            full[prompt.key],
            needed=needed_grants(prompt, is_after=is_after),
            grants=grants,
            tokens=0 if prompt.is_marker else counter.count(prompt.content),
        )


def _part(
    prompt: PresetPrompt,
    made: PromptComponent | None,
    full: PromptComponent,
    *,
    needed: Grants,
    grants: Grants,
    tokens: int,
) -> PromptPart:
    place, granted = place_of(made) if made is not None else "", place_of(full)
    shown = made or full
    return PromptPart(
        identifier=prompt.identifier,
        name=prompt.name or prompt.identifier,
        key=shown.key,
        id=shown.id,
        enabled=full.enabled,
        is_marker=prompt.is_marker,
        role=prompt.role,
        depth=prompt.depth if prompt.position == "in_chat" else None,
        injection_order=prompt.injection_order,
        triggers=prompt.triggers,
        tokens=tokens,
        place=place,
        granted=granted if place != granted else "",
        grants=in_order(needed - grants),
        needed=in_order(needed),
    )


def _unnamed(preset: Preset) -> Iterator[str]:
    for prompt in preset.by_identifier.values():
        if prompt.is_in_file and prompt.identifier not in preset.switches and not prompt.is_marker:
            yield prompt.name or prompt.identifier


def _macros(texts: Iterable[str]) -> tuple[MacroUse, ...]:
    times = Counter(macro for text in texts for macro in unknown_macros(text))
    return tuple(MacroUse(macro=macro, texts=number) for macro, number in times.most_common())


def _asks(parts: Sequence[PromptPart]) -> Iterator[str]:
    """What asks to be more than a user's text in the history."""
    texts = [part for part in parts if not part.is_marker and part.tokens]
    asking = {
        "to speak as system": [part for part in texts if part.role == "system"],
        "to speak as assistant": [part for part in texts if part.role == "assistant"],
        "for a place before the history": [
            part for part in texts if not {"fields", "system_prompt"}.isdisjoint(part.needed)
        ],
        "for a place after the history": [part for part in texts if "after_history" in part.needed],
        "for the last word of the history": [part for part in texts if part.depth == 0],
    }
    for what, found in asking.items():
        if found:
            on = sum(part.enabled for part in found)
            yield f"{_count(len(found), 'prompt')} ({on} switched on): {what}"


def _uses(parts: Sequence[PromptPart], grants: Grants) -> Iterator[GrantUse]:
    asked = Counter(grant for part in parts for grant in part.needed)
    for grant, gives in _GIVES.items():
        if asked[grant]:
            told = f"{gives} ({asked[grant]})"
            yield GrantUse(grant=grant, gives=told, given=grant in grants)


def _head(report: PresetReport) -> Iterator[str]:
    yield clipped(visible(f"Preset: {report.name}"), WIDTH)
    on = sum(part.enabled for part in report.parts)
    size = "" if report.size_bytes is None else f", {report.size_bytes} bytes"
    yield from item_lines(
        f"{_count(len(report.parts), 'prompt')} in its order, {on} switched on, with"
        f" {report.tokens_on} tokens, counted by {report.counter}{size}"
    )


def _part_lines(report: PresetReport) -> Iterator[str]:
    yield "What becomes which component, in the order of its list:"
    yield from cut_lines(report.parts, _MOST_PARTS, _part_line)


def _part_line(part: PromptPart) -> Iterator[str]:
    mark = "[x]" if part.enabled else "[ ]"
    tokens = "a place" if part.is_marker else f"{part.tokens} tokens"
    yield clipped(f"  {mark} {visible(part.name)} ({tokens})", WIDTH)
    order = f", order {part.injection_order}" if part.injection_order != DEFAULT_ORDER else ""
    yield from item_lines(f"{part.place or 'stays where it is'}{order}", 6)
    told = f"component {part.key}"
    if part.granted:
        told += f"; with {' and '.join(part.grants)}: {part.granted}"
    if part.triggers:
        told += f"; only for {', '.join(part.triggers)}"
    yield from item_lines(told, 6)


def _count(number: int, one: str) -> str:
    return f"{number} {one if number == 1 else one + 's'}"
