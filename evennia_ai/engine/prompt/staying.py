"""Staying: texts that are sent once and remain in the history from then on.

Texts that stay are sent once, just before the event, and are from then on part of the history
there: facts by their mode (`BlocksMode`), lore of a frozen book, notes of the mode `tail`. What the
kept history says already is not sent again; what was cut away is. Such a text is no message of the
conversation: depth does not count it, no key is looked for in it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, get_args

from evennia_ai.engine.prompt.budget import BudgetRules, Fitted, fit
from evennia_ai.engine.prompt.compiled import DYNAMIC
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import OF_DYNAMIC, OF_LORE, Message
from evennia_ai.engine.prompt.pieces import Piece
from evennia_ai.engine.prompt.placement import join, members_of
from evennia_ai.engine.prompt.tokens import TokenCounter

# latest: each prompt has its own facts alone. on_change: facts are sent when they are others than
# those that stand in the history, and stay. all: every prompt's facts stay.
BlocksMode = Literal["latest", "on_change", "all"]
BLOCKS_MODES: Final[tuple[BlocksMode, ...]] = get_args(BlocksMode)


class Standing(NamedTuple):
    """Pieces that the message of this absolute index says already."""

    pieces: tuple[Piece, ...]
    at: int


def fit_beside(
    history: History,
    pieces: Sequence[Piece],
    *,
    blocks: BlocksMode,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]],
    cut: int,
) -> tuple[Fitted, Sequence[Standing]]:
    """What fits of `pieces` that the history does not say already, and what it says.

    What stood in a part that is cut away now has to fit like everything else.
    """
    if not history.has_staying:
        return fit(pieces, history, rules=rules, counter=counter, fixed=fixed, cut=cut), ()
    standing = _standing(history, pieces, blocks=blocks, cut=cut)
    while True:
        said = {id(piece) for one in standing for piece in one.pieces}
        wanted = [piece for piece in pieces if id(piece) not in said]
        fitted = fit(wanted, history, rules=rules, counter=counter, fixed=fixed, cut=cut)
        kept = [one for one in standing if one.at >= fitted.first]
        if len(kept) == len(standing):
            return fitted, standing
        standing, cut = kept, fitted.first


def _standing(
    history: History, pieces: Sequence[Piece], *, blocks: BlocksMode, cut: int
) -> list[Standing]:
    """What of `pieces` the history says already, from the index it was last cut at on."""
    lore = (piece for piece in pieces if piece.claim.stays.startswith(OF_LORE))
    found = [_standing_text(piece, history, cut) for piece in lore]
    if blocks == "on_change":
        found.append(_standing_facts(pieces, history, cut))
    return [one for one in found if one is not None]


def with_staying_facts(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages of a prompt, its facts marked as staying."""
    return tuple(
        replace(message, stays=True, of=OF_DYNAMIC)
        if message.block == "dynamic" and not message.stays
        else message
        for message in messages
    )


def left_behind(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The texts that a prompt leaves to the history, as that holds them: right before its event."""
    return tuple(
        replace(message, block="history", injected=False, counted=False)
        for message in messages
        if message.stays and (message.injected or message.block != "history")
    )


def says_the_same(message: Message, piece: Piece) -> bool:
    """Whether a message that stays is this text, as its author has it now.

    What macros made of the same text another time is no reason to say it again.
    """
    if message.content == piece.message.content:
        return True
    revisions = {p.revision for p in message.parts if p.origin == piece.claim.origin}
    return revisions == {piece.claim.revision}


def _standing_text(piece: Piece, history: History, cut: int) -> Standing | None:
    index = history.newest_staying(piece.claim.stays, first=cut)
    if index is None or not says_the_same(history[index], piece):
        return None
    return Standing((piece,), index)


def _standing_facts(pieces: Sequence[Piece], history: History, cut: int) -> Standing | None:
    index = history.newest_staying(OF_DYNAMIC, first=cut)
    facts = members_of(DYNAMIC, pieces)
    if index is None or not facts or join(DYNAMIC, facts).content != history[index].content:
        return None
    return Standing(tuple(facts), index)
