"""The format of the history: names of speakers, quotes, and a stand-in for a user message.

Macros in messages of the conversation are never expanded, and the records stay unchanged. A message
whose form changes becomes a new message without a record. Prompts are rebuilt from stored messages,
so the new message is stored in the form in which it was sent.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.engine.prompt.assembly.rules import AssemblyRules, Names
from evennia_ai.engine.prompt.fragments import Fragment
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.messages import Message

STAND_IN: Final = "assembly:stand_in"
"""The origin of the user message that is added if the character spoke last."""

_SPEAKING: Final = ("user", "assistant")


class _MessageFormat(NamedTuple):
    """The format of messages in the history: where names go, and whether quotes are added."""

    names: Names
    quote_user: bool


class _FormattedHistory(NamedTuple):
    """A formatted history, together with the format that it was made for."""

    way: _MessageFormat
    history: History


# Caches in the memos of a message and of a conversation's history: their forms with SillyTavern's
# formatting, such as names before the text.
_SHOWN: Final = Slot[tuple[_MessageFormat, Message]]("shown")
_SHOWN_HISTORY: Final = Slot[_FormattedHistory]("shown history")


def format_history(history: History, rules: AssemblyRules) -> History:
    """Return the history in the format of the rules; the given object if nothing changes."""
    if rules.names == "field" and not rules.quote_user:
        return history
    way = _MessageFormat(rules.names, rules.quote_user)
    known = history.memo.get(_SHOWN_HISTORY)
    if known is None or known.way != way or len(known.history) > len(history):
        shown = History(
            (_format_message(message, way) for message in history),
            earlier=history.earlier,
            earlier_users=history.earlier_users,
            earlier_replies=history.earlier_replies,
            segment=history.segment,
        )
    else:
        new = history.between(known.history.stop, history.stop)
        shown = known.history.appended(*(_format_message(message, way) for message in new))
    history.memo[_SHOWN_HISTORY] = _FormattedHistory(way, shown)
    return shown


def format_event(event: Message | None, rules: AssemblyRules) -> Message | None:
    """Return the event that the NPC answers, in the format of the rules."""
    if event is None or (rules.names == "field" and not rules.quote_user):
        return event
    return _format_message(event, _MessageFormat(rules.names, rules.quote_user))


def _format_message(message: Message, way: _MessageFormat) -> Message:
    """Return a message in this format; return the given object if nothing changes."""
    if not message.counted or message.role == "tool":
        return message
    known = message.memo.get(_SHOWN)
    if known is not None and known[0] == way:
        return known[1]
    name, content = message.name, message.content
    if way.names != "field":
        if way.names == "content" and name and message.role in _SPEAKING:
            content = f"{name}: {content}"
        name = None
    if way.quote_user and message.role == "user":
        content = f'"{content}"'
    made = message
    if (name, content) != (message.name, message.content):
        origin = f"history:{message.record}" if message.record else message.origin
        made = replace(message, name=name, content=content, origin=origin, record=None, memo=Memo())
    message.memo[_SHOWN] = way, made
    return made


def stand_in_message(
    rules: AssemblyRules, history: History, fragments: Iterable[Fragment], *, answers: bool
) -> Message | None:
    """Return a user message to end a history in which the character spoke last, or None.

    Args:
        rules: The rules, which have the text of the message.
        history: The messages that the prompt may show.
        fragments: The texts of the prompt. A text at depth 0 with another role than the character's
            already ends the history, so no message is needed.
        answers: True if an event or a tool's result follows the history.
    """
    if not rules.stand_in or answers or not len(history):
        return None
    if history[history.stop - 1].role != "assistant":
        return None
    at_the_end = (p for p in fragments if p.claim.depth == 0 and not p.claim.from_oldest)
    if any(fragment.message.role != "assistant" for fragment in at_the_end):
        return None
    return Message("user", rules.stand_in, origin=STAND_IN)
