"""Persistent texts: a prompt sends them once, and then they stay in the history.

Three kinds of text can persist: facts (depending on `BlocksMode`), entries of a frozen lorebook,
and notes of the mode `tail`. The first prompt places such a text right before the event. The
history keeps it at that place, so later prompts do not add it again. If it is cut away with the old
part of the history, it is sent again.

A persistent text is not a message of the conversation: injection depths do not count it, and it is
not searched for keys.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, get_args

from evennia_ai.engine.prompt.budget import BudgetRules, Fitted, fit_to_limit
from evennia_ai.engine.prompt.fragments import (
    DYNAMIC,
    Fragment,
    fragments_sharing,
    merge_fragments,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import OF_DYNAMIC, OF_LORE, Message
from evennia_ai.engine.prompt.tokens import TokenCounter

# With "latest", each prompt shows only its own facts. With "on_change", facts persist, and they are
# only sent if they differ from the newest facts in the history. With "all", the facts of every
# prompt persist.
BlocksMode = Literal["latest", "on_change", "all"]
BLOCKS_MODES: Final[tuple[BlocksMode, ...]] = get_args(BlocksMode)


class AlreadySent(NamedTuple):
    """Fragments that are not sent again, because a message of the history has their text."""

    fragments: tuple[Fragment, ...]
    at: int
    """The absolute index of the persistent message."""


def fit_unsent(
    history: History,
    fragments: Sequence[Fragment],
    *,
    blocks: BlocksMode,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]],
    cut: int,
) -> tuple[Fitted, Sequence[AlreadySent]]:
    """Fit the fragments into the budget, except those that are already in the history.

    Args:
        history: The messages that the prompt may show.
        fragments: All texts that are candidates for the prompt.
        blocks: The mode of facts.
        rules: The budget.
        counter: The counter for tokens.
        fixed: The messages that are always kept, with their tokens.
        cut: The absolute index at which the previous prompt cut the history.

    Returns:
        The texts and history that fit, and the fragments that the kept history already has.

    Raises:
        BudgetError: the required texts do not fit.
    """
    if not history.has_staying:
        return fit_to_limit(
            fragments, history, rules=rules, counter=counter, fixed=fixed, cut=cut
        ), ()
    lore = (one for one in fragments if one.claim.stays.startswith(OF_LORE))
    found = [_text_already_sent(fragment, history, cut) for fragment in lore]
    if blocks == "on_change":
        found.append(_facts_already_sent(fragments, history, cut))
    already_sent = [one for one in found if one is not None]
    # Fitting the budget may cut away a persistent message of the history. Then its fragments must
    # be sent again and have to fit, too, which may cut away further messages. Each round has fewer
    # persistent messages left, so the loop ends.
    while True:
        said = {id(fragment) for one in already_sent for fragment in one.fragments}
        unsent = [fragment for fragment in fragments if id(fragment) not in said]
        fitted = fit_to_limit(unsent, history, rules=rules, counter=counter, fixed=fixed, cut=cut)
        kept = [one for one in already_sent if one.at >= fitted.first]
        if len(kept) == len(already_sent):
            return fitted, already_sent
        already_sent, cut = kept, fitted.first


def _text_already_sent(fragment: Fragment, history: History, cut: int) -> AlreadySent | None:
    """Return the message of the history that already has a persistent fragment's text, or None."""
    index = history.newest_staying(fragment.claim.stays, first=cut)
    if index is None or not is_same_text(history[index], fragment):
        return None
    return AlreadySent((fragment,), index)


def _facts_already_sent(
    fragments: Sequence[Fragment], history: History, cut: int
) -> AlreadySent | None:
    """Return the history message that has exactly the facts of this prompt, or None."""
    index = history.newest_staying(OF_DYNAMIC, first=cut)
    facts = fragments_sharing(DYNAMIC, fragments)
    if index is None or not facts:
        return None
    if merge_fragments(DYNAMIC, facts).content != history[index].content:
        return None
    return AlreadySent(tuple(facts), index)


def is_same_text(message: Message, fragment: Fragment) -> bool:
    """True if a persistent message has a fragment's text, or the same version of its source.

    Macros may expand to another text now, but that alone is no reason to send it again.
    """
    if message.content == fragment.message.content:
        return True
    revisions = {p.revision for p in message.parts if p.origin == fragment.claim.origin}
    return revisions == {fragment.claim.revision}


def mark_facts_as_staying(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages of a prompt, with those of facts marked as persistent."""
    return tuple(
        replace(message, stays=True, of=OF_DYNAMIC)
        if message.block == "dynamic" and not message.stays
        else message
        for message in messages
    )


def texts_left_in_history(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the persistent texts of a prompt as messages that the history stores.

    Args:
        messages: The messages of the prompt. Append the result right before its event.
    """
    return tuple(
        replace(message, block="history", injected=False, counted=False)
        for message in messages
        if message.stays and (message.injected or message.block != "history")
    )
