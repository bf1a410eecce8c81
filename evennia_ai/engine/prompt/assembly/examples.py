"""Example dialogue of a card as several messages: one for each turn of a speaker.

Each block of examples has a heading before its messages. A turn begins at a line that starts with
the name of the user or the character and a colon. Name and colon are removed. Text before the
first such line belongs to the first turn. Consecutive lines of one speaker are one turn
(SillyTavern 1.19). A block without a speaker becomes one message without name and heading, so that
no text of an author is lost.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.engine.prompt.assembly.merging import EXAMPLE_HEADING
from evennia_ai.engine.prompt.assembly.rules import AssemblyRules
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.filling import Filling, MacroStore
from evennia_ai.engine.prompt.fragments import (
    DYNAMIC,
    Fragment,
    block_breaks,
    blocks_of,
    fragments_sharing,
)
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import Message, message_tokens
from evennia_ai.engine.prompt.prefix_rules import stable_values
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Verdict

EXAMPLES: Final = "dialogue_examples"
_ORIGIN: Final = f"component:{EXAMPLES}"
_START: Final = re.compile(r"\s*(?:<START>\s*)+", re.IGNORECASE)


class _Speakers(NamedTuple):
    """The names of the speakers in example dialogue, and the heading above each block of it."""

    user: str
    char: str
    heading: str


# A cache in the memo of a message with example dialogue: the speakers, the token counter and the
# label with which the examples were split, and the result. Equal inputs reuse the result.
_APART: Final = Slot[tuple[tuple[_Speakers, TokenCounter, str], Fragment]]("examples apart")


def split_examples(
    made: Sequence[Fragment | Verdict],
    rules: AssemblyRules,
    *,
    components: ComponentSet,
    filling: Filling,
    store: MacroStore,
) -> list[Fragment | Verdict]:
    """Return the fragments and verdicts, with each example dialogue split into messages.

    Lore next to the examples of a card is split, too. Examples placed inside the history stay one
    message.
    """
    speakers = _speakers(rules, filling, store)
    numbers = dict(_lore_next_to_examples(made, components))
    return [
        _split_fragment(one, speakers, numbers.get(id(one), ""), filling.counter)
        if isinstance(one, Fragment) and (id(one) in numbers or _is_of_the_card(one))
        else one
        for one in made
    ]


def _is_of_the_card(fragment: Fragment) -> bool:
    claim = fragment.claim
    return claim.origin == _ORIGIN and claim.depth is None and claim.shared is not DYNAMIC


def _lore_next_to_examples(
    made: Iterable[Fragment | Verdict], components: ComponentSet
) -> Iterator[tuple[int, str]]:
    """Yield the `id()` and the sort key of each lore fragment next to the card's examples."""
    fragments = [one for one in made if isinstance(one, Fragment) and one.claim.shared is not None]
    if not fragments:
        return
    keys = {
        shared.key
        for shared in (components.next_to(EXAMPLES, side=side) for side in ("before", "after"))
        if shared is not None
    }
    shared_messages = {
        one.claim.shared for one in fragments if _shared_key(one).partition(":")[0] in keys
    }
    for shared in shared_messages:
        assert shared is not None
        for number, fragment in enumerate(fragments_sharing(shared, fragments)):
            yield id(fragment), f"{shared.key} {number:06}"


def _shared_key(fragment: Fragment) -> str:
    return fragment.claim.shared.key if fragment.claim.shared else ""


def _speakers(rules: AssemblyRules, filling: Filling, store: MacroStore) -> _Speakers:
    values = stable_values(filling.values_for("system"))
    heading = rules.example_heading
    if "{" in heading or "<" in heading:
        heading = store.expand_or_keep(
            compile_template(heading, trust="imported"), values, filling.dice
        )
    return _Speakers(values.get("user", ""), values.get("char", ""), heading)


def _split_fragment(
    fragment: Fragment, speakers: _Speakers, key: str, counter: TokenCounter
) -> Fragment:
    """Return a fragment of examples with its text split into messages, one for each speaker's turn.

    Args:
        fragment: The examples of the card, or lore next to them.
        speakers: The names that begin a turn, and the heading.
        key: The sort key of lore next to the examples, "" for the examples themselves.
        counter: The counter for tokens.
    """
    asked = (speakers, counter, key)
    known = fragment.message.memo.get(_APART)
    if known is not None and known[0] == asked:
        return known[1]
    claim, message = fragment.claim, fragment.message
    if claim.shared is not None:
        fragment = fragment._replace(breaks=block_breaks(message.content))
        claim = replace(claim, id=claim.shared.id, key=key, role=claim.shared.role, shared=None)
        message = replace(message, role=claim.role)
    lines = tuple(
        tuple(_block_messages(block, message, speakers))
        for block in blocks_of(fragment)
        if block.strip()
    )
    tokens = sum(sum(message_tokens(block, counter)) for block in lines)
    made = fragment._replace(
        claim=claim,
        message=message,
        tokens=tokens,
        rank=claim.rank,
        breaks=(),
        lines=lines,
    )
    fragment.message.memo[_APART] = asked, made
    return made


def _block_messages(block: str, message: Message, speakers: _Speakers) -> Iterator[Message]:
    """Yield the messages of one block of examples: its heading, then one for each turn."""
    begins = _START.match(block)
    turns = list(_split_turns((block[begins.end() :] if begins else block).strip(), speakers))
    if speakers.heading.strip() and any(name for name, _ in turns):
        yield Message(message.role, speakers.heading, origin=EXAMPLE_HEADING, block="ordered")
    for name, text in turns:
        yield Message(
            role=message.role,
            content=text,
            name=name,
            block="ordered",
            origin=message.origin,
            revision=message.revision,
        )


def _split_turns(text: str, speakers: _Speakers) -> Iterator[tuple[str | None, str]]:
    """Yield the turns in a block of examples, each as the name of its message and its text."""
    labels = {f"{speakers.user}:": "example_user", f"{speakers.char}:": "example_assistant"}
    begun: list[str] = []
    speaking = ""
    for line in text.replace("\r", "").split("\n"):
        label = next((one for one in labels if one != ":" and line.startswith(one)), "")
        if label and speaking and label != speaking:
            yield labels[speaking], "\n".join(begun).replace(speaking, "", 1).strip()
            begun = []
        speaking = label or speaking
        begun.append(line)
    left = "\n".join(begun)
    if speaking:
        yield labels[speaking], left.replace(speaking, "", 1).strip()
    elif left.strip():
        yield None, left
