"""What lore an NPC would have in mind if somebody said something now, and why not the rest."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evennia_ai.commands.setup.lore.named import split, stored_book
from evennia_ai.commands.setup.lore.shown import entries_in_words
from evennia_ai.commands.strict import CommandError
from evennia_ai.compose import Composition
from evennia_ai.game.mind.viewers import viewer_of
from evennia_ai.game.senses.presence import NPC, HasMind
from evennia_ai.lorebook.activation.activation import Activation
from evennia_ai.lorebook.book import names_of, packed
from evennia_ai.minds.hidden import HiddenLore
from evennia_ai.prompt.report import origins_called
from evennia_ai.prompt.trace import Verdict
from evennia_ai.text.columns import WIDTH, clipped, visible, wrapped

_MOST_SHOWN: Final = 60


def npc_at_hand(caller: Any) -> Any:
    """The only NPC with a mind where `caller` is."""
    here = caller.location.contents if caller.location else []
    npcs: list[Any] = [npc for npc in here if isinstance(npc, HasMind)]
    if len(npcs) != 1:
        there = ", ".join(npc.key for npc in npcs)
        who = f"There are several NPCs here ({there})" if npcs else "There is no NPC here"
        raise CommandError(f"{who}; name one: lore/test <npc> = <text>.")
    return npcs[0]


def trial_lines(caller: Any, npc: NPC, text: str) -> list[str]:
    """What `text` would wake in `npc`, said by `caller` here and now; nothing is changed."""
    if not npc.ai.view().books:
        return [f"No lorebook counts for {npc.key} here; lore/attach lets one count."]
    made: Composition = npc.ai.preview_composition(text, caller)
    names = names_of(npc.ai.view().books)
    hidden = HiddenLore(viewer_of(caller))
    touched = made.lore.calling(made.prompt.called).touched
    seen = [verdict for verdict in touched if not hidden.covers(verdict.item)]
    awake = [verdict for verdict in _in_order(made.lore, seen) if verdict.kept]
    others = [verdict for verdict in seen if not verdict.kept]
    head = f"If {caller.key} said this to {npc.key} now; nothing was changed."
    lines = [*_indented(head, 0), f"{len(awake)} awake:"]
    left_out = _left_out(made)
    for verdict in awake:
        lines += _judged(verdict, names, late=left_out.get(verdict.item, ""))
    lines.append(f"{len(others)} concerned and silent:")
    for verdict in others[:_MOST_SHOWN]:
        lines += _judged(verdict, names)
    if len(others) > _MOST_SHOWN:
        lines.append(f"  and {len(others) - _MOST_SHOWN} more")
    return [*lines, *_silent(made.lore, hidden)]


def item_to_explain(caller: Any, npc: NPC, text: str) -> str:
    """What `text` asks about: `<book>/<entry>` as the label; CommandError where a lock hides it."""
    book, entry = split(text)
    stored = stored_book(book) if entry else None
    item = f"{stored.name}#{entry}" if stored else text
    hidden = HiddenLore(viewer_of(caller))
    origins = [item, *origins_called(item, names_of(npc.ai.view().books))]
    if any(hidden.covers(origin) for origin in origins):
        raise CommandError(f"You may not see '{text}': its lock hides it from you.")
    return item


def _in_order(lore: Activation, verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The verdicts, those on active entries in the order of activation."""
    at = {entry.origin: index for index, entry in enumerate(lore.entries)}
    return sorted(verdicts, key=lambda verdict: at.get(verdict.item, len(at)))


def _judged(verdict: Verdict, names: Mapping[str, str], *, late: str = "") -> Iterator[str]:
    name = f" ({names[verdict.item]})" if verdict.item in names else ""
    cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
    yield from _indented(f"{verdict.item.removeprefix('lore:')}{name}{cost}", 2)
    yield from _indented(verdict.reason, 6)
    if late:
        yield from _indented(f"but left out of the prompt: {late}", 6)


def _left_out(made: Composition) -> dict[str, str]:
    """Why entries that are awake are not in the prompt."""
    later = [v for v in made.prompt.told if v.stage != "activate" and not v.kept]
    return {verdict.item: verdict.reason for verdict in reversed(later)}


def _silent(lore: Activation, hidden: HiddenLore) -> Iterator[str]:
    touched = {verdict.item for verdict in lore.touched}
    count = len(lore.verdicts) - len(touched)
    yield f"{count} more stay silent, and nothing concerns them."
    for silence in lore.silent:
        labels = (label for label in silence.labels() if f"lore:{label}" not in touched)
        seen = [label for label in labels if not hidden.covers(f"lore:{label}")]
        if seen:
            uids = packed(label.removeprefix(f"{silence.book}#") for label in seen)
            told = f"{silence.book}, {entries_in_words(len(seen))}"
            line = f"  {told}: {silence.reason}: {uids}"
            yield clipped(visible(line), WIDTH)


def _indented(text: str, margin: int) -> list[str]:
    return [" " * margin + line for line in wrapped(text, WIDTH - margin)]
