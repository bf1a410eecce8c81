"""The report that a builder reads before approving a preset, as values, JSON or lines.

It lists the components and their places, unknown macros, every prompt that requests the system role
or a place outside the history, removed secrets, and data that has no effect. The report stores
nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    ALLOWS,
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
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.formats.cards.components import DEFAULT_DEPTH
from evennia_ai.formats.cards.content_warnings import (
    ContentWarning,
    find_text_warnings,
    group_warnings,
)
from evennia_ai.formats.cards.report.import_report import (
    GrantUse,
    cut_lines,
    grant_lines,
    item_lines,
    titled_lines,
    warning_lines,
)
from evennia_ai.formats.cards.report.parts import place_of
from evennia_ai.formats.presets.mapping import (
    contained_key,
    needed_grants,
    number_prompts,
    preset_assembly,
    preset_components,
)
from evennia_ai.formats.presets.preset import (
    HISTORY,
    OLD_KEYS,
    SENT_TEXTS,
    TEXT_DEFAULTS,
    Preset,
    PresetPrompt,
    body_of,
    is_list_of_items,
    is_order_in_use,
)
from evennia_ai.formats.regex_scripts import MEMBER, counted_scripts, preset_scripts, read_scripts

_MOST_PARTS: Final = 40
_MOST_NAMES: Final = 12
# Model settings in a preset. The report lists them as unused, because an NPC takes these settings
# from its model profile.
_SAMPLING: Final = (
    *("openai_max_context", "openai_max_tokens", "temperature", "top_p", "top_k", "top_a", "min_p"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "seed", "n"),
)
# Texts for situations that a game does not have, because an NPC always answers an event. The report
# lists them as unused.
_UNUSED_TEXTS: Final = (
    *("new_group_chat_prompt", "group_nudge_prompt", "continue_nudge_prompt"),
    *("impersonation_prompt", "assistant_prefill", "assistant_impersonation"),
    "human_sysprompt_message",
)
_READ: Final = frozenset(
    {"prompts", "prompt_order", "names_behavior", "names_in_completion", "extensions", "data"}
    | {MEMBER}
    | {"squash_system_messages", "version", "type", *TEXT_DEFAULTS, *_SAMPLING}
    | {*OLD_KEYS.values()}
)
_CONNECTION: Final = ("chat_completion_source", "_model", "openrouter_", "azure_", "custom_")
# Sentences of the report on what each grant allows a preset.
_GIVES: Final[Mapping[Grant, str]] = {
    "system_prompt": "its main prompt comes after the game's rules, where a card may replace it",
    "fields": "its prompts are before the history",
    "after_history": "its prompts for after the history are placed there",
    "positions": "texts of the card, the persona and lore are placed by its order",
    "roles": "its prompts speak as system or assistant",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A row of the report of a preset: a prompt in its order, and the component made from it."""

    identifier: str
    name: str
    key: str
    id: int
    """The ID of the prompt's component.

    A prompt without a component has the ID that its component would get with all grants.
    """
    enabled: bool
    is_marker: bool
    role: Role
    """The role that the prompt requests."""
    depth: int | None
    """The prompt's depth in the chat; None if its place in the order decides."""
    injection_order: int
    triggers: tuple[str, ...]
    tokens: int
    place: str
    """The place of the component in the prompt that is sent, with the present grants.

    It is "" for a marker whose text the preset may not move.
    """
    granted: str = ""
    """The place that the component would get with the missing `grants`; "" if none is missing."""
    grants: tuple[Grant, ...] = ()
    """The grants that the prompt needs for its place and role, and lacks."""
    needed: tuple[Grant, ...] = ()
    """The grants that the prompt needs for its place and role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MacroUse:
    """An unknown macro of a preset, which is sent as written."""

    macro: str
    texts: int
    """The number of the preset's prompts and other texts that contain the macro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetReport:
    """The report of a preset and of its effects on prompts."""

    name: str
    size_bytes: int | None
    grants: Grants
    counter: str
    tokens_on: int
    """The total tokens of the prompts that are switched on."""
    parts: tuple[PromptPart, ...]
    unnamed: tuple[str, ...]
    """The names of prompts outside the order; they are kept in the file and never sent."""
    rules: Mapping[str, Any]
    """The assembly rules that the preset sets."""
    asks: tuple[str, ...]
    """A sentence for each request for a role other than user or a place outside the history."""
    unknown_macros: tuple[MacroUse, ...]
    secrets: tuple[str, ...]
    """The names of the secrets that were removed from the file."""
    kept: tuple[str, ...]
    """A sentence for each kind of data that is kept for the export and has no effect."""
    uses: tuple[GrantUse, ...]
    warnings: tuple[ContentWarning, ...]
    notices: tuple[str, ...]


def preset_report(
    preset: Preset,
    *,
    grants: Grants = NO_GRANTS,
    counter: TokenCounter = ESTIMATE,
    size_bytes: int | None = None,
    after_depth: int = DEFAULT_DEPTH,
) -> PresetReport:
    """Build the report of a preset.

    Args:
        grants: the grants that the report assumes.
        size_bytes: the size of the preset's file.
        after_depth: the depth of prompts after the history if the grant for them is missing.
    """
    now = preset_components(preset, grants=grants, after_depth=after_depth)
    parts = tuple(_prompt_parts(preset, now, grants, counter))
    prompts = [preset.by_identifier[item.identifier] for item in preset.order]
    return PresetReport(
        name=preset.name,
        size_bytes=size_bytes,
        grants=grants,
        counter=counter.name,
        tokens_on=sum(part.tokens for part in parts if part.enabled),
        parts=parts,
        unnamed=tuple(
            prompt.name or prompt.identifier
            for prompt in preset.by_identifier.values()
            if prompt.is_in_file
            and prompt.identifier not in preset.switches
            and not prompt.is_marker
        ),
        rules=preset_assembly(preset).changed,
        asks=tuple(_list_asks(parts)),
        unknown_macros=_count_macros(
            [*(one.content for one in prompts), *map(preset.texts.__getitem__, SENT_TEXTS)]
        ),
        secrets=preset.secrets,
        kept=tuple(_list_kept(preset)),
        uses=(*_grant_uses(parts, grants), *_script_use(preset, grants)),
        warnings=group_warnings(
            found
            for prompt in prompts
            for found in find_text_warnings(
                prompt.content, f"prompt '{prompt.name or prompt.identifier}'"
            )
        ),
        notices=preset.notices,
    )


def report_object(report: PresetReport) -> dict[str, Any]:
    """Return the report of a preset as the JSON object that `--json` prints."""
    values = asdict(report)
    warnings = [{**asdict(one), "text": one.text} for one in report.warnings]

    return {**values, "grants": list(in_order(report.grants)), "warnings": warnings}


def report_lines(report: PresetReport) -> list[str]:
    """Return the report of a preset as lines; lists that are cut end with "and N more"."""
    macros = [f"{one.macro} in {_count(one.texts, 'text')}" for one in report.unknown_macros]
    rules = [f"{name}: {value!r}" for name, value in report.rules.items()]
    secrets = [f"{name} was removed from the file" for name in report.secrets]
    sections = (
        _head_lines(report),
        _part_lines(report),
        titled_lines("Assembly rules", rules),
        titled_lines("Prompts outside the order, kept and not sent", report.unnamed),
        titled_lines("It asks for", report.asks),
        titled_lines("Unknown macros, sent as written", macros),
        titled_lines("Secrets", secrets),
        titled_lines("Kept for the export, without effect", report.kept),
        titled_lines("Notices", report.notices),
        warning_lines(report.warnings, kind="preset"),
        grant_lines(report.uses),
    )
    return [line for section in sections for line in section]


def _prompt_parts(
    preset: Preset, made: Iterable[PromptComponent], grants: Grants, counter: TokenCounter
) -> Iterator[PromptPart]:
    now = {one.key: one for one in made}
    full = {one.key: one for one in preset_components(preset, grants=ALL_GRANTS)}
    for item, _, is_after in number_prompts(preset):
        prompt = preset.by_identifier[item.identifier]
        if item.identifier == HISTORY or prompt.key not in full:
            continue
        yield _prompt_part(
            prompt,
            now.get(prompt.key) or now.get(contained_key(prompt)),
            full[prompt.key],
            needed=needed_grants(prompt, is_after=is_after),
            grants=grants,
            tokens=0 if prompt.is_marker else counter.count(prompt.content),
        )


def _prompt_part(
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


def _count_macros(texts: Iterable[str]) -> tuple[MacroUse, ...]:
    times = Counter(macro for text in texts for macro in unknown_macros(text))
    return tuple(MacroUse(macro=macro, texts=number) for macro, number in times.most_common())


def _list_asks(parts: Sequence[PromptPart]) -> Iterator[str]:
    """Yield a sentence for each kind of unusual role or place that prompts of a preset request.

    These are roles other than user, places outside the history, and the place after the newest
    message.
    """
    texts = [part for part in parts if not part.is_marker and part.tokens]
    asking = {
        "to speak as system": [part for part in texts if part.role == "system"],
        "to speak as assistant": [part for part in texts if part.role == "assistant"],
        "for a place before the history": [
            part for part in texts if not {"fields", "system_prompt"}.isdisjoint(part.needed)
        ],
        "for a place after the history": [part for part in texts if "after_history" in part.needed],
        "for a place after the newest message": [part for part in texts if part.depth == 0],
    }
    for what, found in asking.items():
        if found:
            on = sum(part.enabled for part in found)
            yield f"{_count(len(found), 'prompt')} ({on} switched on): {what}"


def _grant_uses(parts: Sequence[PromptPart], grants: Grants) -> Iterator[GrantUse]:
    needed = Counter(grant for part in parts for grant in part.needed)
    for grant, gives in _GIVES.items():
        if needed[grant]:
            effect = f"{gives} ({needed[grant]})"
            yield GrantUse(grant=grant, gives=effect, given=grant in grants)


def _script_use(preset: Preset, grants: Grants) -> Iterator[GrantUse]:
    if scripts := read_scripts(preset_scripts(preset.source)):
        gives = f"{ALLOWS['regex']} ({counted_scripts(scripts)})"
        yield GrantUse(grant="regex", gives=gives, given="regex" in grants)


def _list_kept(preset: Preset) -> Iterator[str]:
    """Yield a sentence for each kind of data in a preset that has no effect in this package."""
    source = preset.source
    if sampling := [
        f"{name} {source[name]}"
        for name in _SAMPLING
        if isinstance(source.get(name), int | float) and not isinstance(source[name], bool)
    ]:
        yield f"model settings, which come from the NPC's profile instead: {', '.join(sampling)}"
    others = [name for name in source if name not in _READ]
    models = [name for name in others if any(part in name for part in _CONNECTION)]
    if models:
        yield f"models and connections, never applied: {_few_names(models)}"
    if texts := [name for name in _UNUSED_TEXTS if source.get(name)]:
        yield f"texts for situations that a game does not have: {_few_names(texts)}"
    extensions = source.get("extensions")
    known = extensions if isinstance(extensions, Mapping) else {}
    if names := [name for name in known if name != MEMBER]:
        yield f"data of other extensions: {_few_names(names)}"
    if rest := [name for name in others if name not in models]:
        yield f"other members: {_few_names(rest)}"
    lists = body_of(source).get("prompt_order")
    if not isinstance(lists, list) or is_list_of_items(lists):
        return
    if idle := sum(not is_order_in_use(one) for one in lists):
        yield f"orders of prompts that SillyTavern does not use: {idle}"


def _few_names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(one_line(name)[:40] for name in names[:_MOST_NAMES]) + more


def _head_lines(report: PresetReport) -> Iterator[str]:
    yield clip_text(escape_controls(f"Preset: {report.name}"), WIDTH)
    on = sum(part.enabled for part in report.parts)
    size = "" if report.size_bytes is None else f", {report.size_bytes} bytes"
    yield from item_lines(
        f"{_count(len(report.parts), 'prompt')} in its order, {on} switched on, with"
        f" {report.tokens_on} tokens, counted by {report.counter}{size}"
    )


def _part_lines(report: PresetReport) -> Iterator[str]:
    yield "Prompts and their components, in the order of the preset:"
    yield from cut_lines(report.parts, _MOST_PARTS, _part_line)


def _part_line(part: PromptPart) -> Iterator[str]:
    mark = "[x]" if part.enabled else "[ ]"
    tokens = "a place" if part.is_marker else f"{part.tokens} tokens"
    yield clip_text(f"  {mark} {escape_controls(part.name)} ({tokens})", WIDTH)
    order = f", order {part.injection_order}" if part.injection_order != DEFAULT_ORDER else ""
    yield from item_lines(f"{part.place or 'stays where it is'}{order}", 6)
    component = f"component {part.key}"
    if part.granted:
        component += f"; with {' and '.join(part.grants)}: {part.granted}"
    if part.triggers:
        component += f"; only for {', '.join(part.triggers)}"
    yield from item_lines(component, 6)


def _count(number: int, one: str) -> str:
    return f"{number} {one if number == 1 else one + 's'}"
