"""Why entries of lore are in a prompt, in sentences, with the words that activated them.

A sentence such as "because Anna said *night ferry*" names the text in which the key was found. Its
place in that text lets a page highlight the words. `ai/why` shows the same reason with all figures.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry, Judgement
from evennia_ai.engine.lorebook.activation.reasons import SOURCES, secondary_keys_in_words
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.lorebook.scan.hit_cache import EVENT, FED, NOTE, SOURCE

_CONSTANT: Final = "constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Because:
    """Why one entry of lore is active."""

    item: str
    """The origin of the entry, such as "lore:harbour#5"."""
    lead: str
    """The sentence between "because" and the words, such as "Anna said"."""
    words: str = ""
    """The words that activated it, as they are written; "" if no words did."""
    tail: str = ""
    """The sentence after the words."""
    record: str = ""
    """The id of the record of the message that has the words; "" if no message has them."""
    origin: str = ""
    """The origin of the active entry whose text has the words; "" if none has them."""
    text: str = ""
    """The text in which the words are, "" if it is no text of the prompt."""
    start: int = 0
    """The index of the words in `text`."""

    @property
    def sentence(self) -> str:
        """Return the sentence as plain text."""
        words = f' "{self.words}"' if self.words else ""
        return f"because {self.lead}{words}{self.tail}"


def titles_of(inputs: Inputs) -> dict[str, str]:
    """Return the names that authors gave the components and the lore of a prompt, by origin."""
    components = (one.component for one in inputs.components.compiled.members)
    named = {f"component:{one.key}": one.name for one in components if one.name}
    return {**named, **names_of(inputs.books)}


def why_active(inputs: Inputs, lore: Activation) -> tuple[Because, ...]:
    """Return why each active entry of lore is in the prompt that was composed from these inputs."""
    names = names_of(inputs.books)
    entries = {entry.label: entry for entry in lore.entries}
    return tuple(
        _because(item, judgement, inputs, entries, names)
        for item, judgement in lore.judgements.items()
    )


def _without_key(judgement: Judgement) -> str:
    """Return the sentence about an entry that no key activated."""
    if judgement.cause == _CONSTANT:
        return "it is always active"
    if judgement.sticky:
        return f"it was {judgement.cause.removeprefix('sticky: ')}"
    return f"of {judgement.cause}"


def _because(
    item: str,
    judgement: Judgement,
    inputs: Inputs,
    entries: Mapping[str, ActiveEntry],
    names: Mapping[str, str],
) -> Because:
    found = judgement.found
    if found is None:
        return Because(item=item, lead=_without_key(judgement))
    key, (start, end) = str(judgement.reason.facts[0]), found.span
    logic = secondary_keys_in_words(judgement.reason)
    tail = f", with {logic}" if logic else ""
    if found.place >= EVENT:
        message = inputs.event if found.place == EVENT else inputs.history[found.place]
        assert message is not None
        who = message.name or (inputs.values.get("char", "") if message.role == "assistant" else "")
        if start < 0:
            return Because(item=item, lead="of the name", words=who, tail=tail)
        return Because(
            item=item,
            lead=f"{who or 'a message'} said",
            words=message.content[start:end],
            tail=tail,
            record=message.record or "",
            text=message.content,
            start=start,
        )
    if found.place == FED and (entry := entries.get(found.of)) is not None:
        name = names.get(entry.origin) or found.of
        # Hidden keys of an entry are searched behind its text, and no page shows them.
        is_shown = end <= len(entry.text)
        return Because(
            item=item,
            lead=f"'{name}' mentions",
            words=entry.text[start:end] if is_shown else key,
            tail=tail,
            origin=entry.origin if is_shown else "",
            text=entry.text if is_shown else "",
            start=start,
        )
    if found.place == SOURCE:
        lead = f"{SOURCES[found.of]} mentions"
    else:
        lead = "a note mentions" if found.place == NOTE else "the scanned texts mention"
    return Because(item=item, lead=lead, words=key, tail=tail)


def marked_spans(
    text: str, reasons: Iterable[Because], *, record: str = "", origin: str = ""
) -> list[tuple[int, int]]:
    """Return where a text has words that activated an entry, sorted and without overlaps.

    Args:
        text: A text of the prompt. It may be part of a message, or have a name in front.
        record: The id of the record of its message, "" if it has none.
        origin: Its origin.
    """
    found: list[tuple[int, int]] = []
    for one in reasons:
        is_here = one.origin == origin if one.origin else one.record == record
        at = text.find(one.text) if one.text and is_here else -1
        if at >= 0:
            found.append((at + one.start, at + one.start + len(one.words)))
    spans: list[tuple[int, int]] = []
    for start, end in sorted(set(found)):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans
