"""A table of what an NPC's next prompt is made of, with the command that changes each text.

Components of every scope, texts of the card, notes, lore, memories and facts are listed in the
order of the prompt. The history is one line.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from evennia_ai.commands.prompt_shown import marked, run_in_words, runs
from evennia_ai.commands.screens import Row, Span, head
from evennia_ai.commands.setup.component_shown import labelled
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.memory.recalling import MEMORIES_KEY
from evennia_ai.engine.prompt.components import (
    NO_GRANTS,
    PLUGGABLE_IDS,
    PromptComponent,
    depth_in_words,
)
from evennia_ai.engine.prompt.fragments import Claim, Fragment
from evennia_ai.engine.prompt.report import Report, hidden_lines
from evennia_ai.engine.text.columns import WIDTH, clip_text, count_columns, pad_text
from evennia_ai.formats.cards.components import FIELDS
from evennia_ai.npc.senses.presence import NPC, scopes_of
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.npc.views.presets import is_of_preset
from evennia_ai.store.authored import components, lorebooks
from evennia_ai.store.authored.cards import StoredCard, card_of
from evennia_ai.store.authored.presets import preset_for

_ITEM: Final = 24
# Maps the key of a component that a card fills to the field's name in `card/edit`.
_CARD_FIELDS: Final[Mapping[str, str]] = {
    **{key: "examples" if name == "mes_example" else name for key, name in FIELDS.items()},
    "card_system_prompt": "system_prompt",
    "post_history_instructions": "post_history",
    "card_post_history": "post_history",
    "card_depth_prompt": "depth_prompt",
}


def column(npc: NPC, report: Report, *, pieces: Iterable[Fragment]) -> Iterator[str | Row]:
    """Yield the texts of `report`, the prompt `npc` would send now, and the command for each.

    `pieces` are the fragments of the prompt. They tell the depth of each text in the history.
    """
    yield head(f"What {npc.key}'s next prompt is made of, top to bottom:")
    yield from hidden_lines(report)
    yield f"{'place':>6} {'role':9} {'tokens':>6} {'what':{_ITEM}} to change it"
    books = frozenset(lorebooks.LOREBOOKS.list_keys())
    claims = {piece.claim.origin: piece.claim for piece in pieces}
    known = {one.key: one for one in components.registry().resolved(scopes_of(npc))}
    for run in runs(report):
        first = report.messages[run[0]]
        if first.block == "history" and not first.injected:
            yield (*run_in_words(report, run), Span(f"  ai/history {npc.key}"))
            continue
        for origin in dict.fromkeys(part.origin for part in first.parts):
            claim = claims.get(origin)
            place = _place(origin, claim, known)
            if first.injected:
                place = _depth(claim) if claim else ""
            lead = f"{place:>6} {pad_text(first.role, 9)} {report.by_origin.get(origin, 0):6} "
            yield from _row(lead, origin, _changed_by(npc, origin, known, books))
    yield f"The full texts: component/preview/full {npc.key}"


def _row(lead: str, origin: str, command: str) -> Iterator[Row]:
    item = Span(clip_text(marked(origin), WIDTH - len(lead)), origin.partition(":")[0])
    if (
        count_columns(item.text) <= _ITEM
        and len(lead) + _ITEM + 1 + count_columns(command) <= WIDTH
    ):
        gap = " " * (_ITEM - count_columns(item.text) + 1)
        yield (Span(lead), item, Span(f"{gap}{command}"))
        return
    yield (Span(lead), item)
    yield (Span(clip_text(f"{'':{len(lead)}}  {command}", WIDTH)),)


def _depth(claim: Claim) -> str:
    """Return the requested depth in the words of the switch `depth`."""
    if claim.depth is None:
        return ""
    return f"{claim.depth} old" if claim.from_oldest else depth_in_words(claim.depth)


def _place(origin: str, claim: Claim | None, known: Mapping[str, PromptComponent]) -> str:
    """Return the ID of a component, or "" for a text without an ID."""
    kind, _, key = origin.partition(":")
    component = known.get(key)
    if component is not None:
        return str(component.id)
    if kind == "component" and claim is not None:
        return str(claim.id)
    return str(PLUGGABLE_IDS.get(key, ""))


def _changed_by(
    npc: NPC, origin: str, known: Mapping[str, PromptComponent], books: Collection[str]
) -> str:
    """Return the command that changes a text, or the source of a text that has none."""
    kind, _, name = origin.partition(":")
    if kind == "component":
        return _of_component(npc, name, known)
    if kind == "lore":
        book, _, entry = name.rpartition("#")
        return f"lore/edit {book if book in books else f'card:{_card_name(npc)}'}/{entry}"
    if kind == "note":
        return f"note/edit {npc.key}/{name}"
    return "(the facts of the moment)" if kind == "block" else "(the event to answer)"


def _of_component(npc: NPC, key: str, known: Mapping[str, PromptComponent]) -> str:
    if key == MEMORIES_KEY:
        return f"ai/memory {npc.key}"
    component = known.get(key)
    if component is not None and component.content.strip():
        return f"component/edit {labelled(component)}"
    card = card_of(npc.ai.ref)
    preset = preset_for(scopes_of(npc))
    if preset is not None and _is_preset_s(key, card):
        return f"preset {preset.name}"
    if card is not None and key in _CARD_FIELDS:
        return f"card/edit {card.name}/{_CARD_FIELDS[key]}"
    return "(made by the engine)"


def _is_preset_s(key: str, stored: StoredCard | None) -> bool:
    """True if the preset, and not the card, supplies a component that no builder wrote."""
    if stored is None:
        return is_of_preset(key, None, grants=NO_GRANTS)
    try:
        card = parsed_card(stored)
    # The status of the NPC reports that its card cannot be read.
    except FormatError:
        card = None
    return is_of_preset(key, card, grants=stored.grants)


def _card_name(npc: NPC) -> str:
    card = card_of(npc.ai.ref)
    return "" if card is None else card.name
