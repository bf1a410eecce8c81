"""Greetings: which greeting of its card an NPC uses, and its words.

Standard: Card V3, `first_mes`, `alternate_greetings`, `group_only_greetings`. A room counts as a
group, a private conversation does not. A greeting that cannot be said is reported to the builder,
and the NPC uses none. Nothing here reads the world or the database.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.formats.cards.card import Card, greetings, opening_message
from evennia_ai.services.llm.speech import speech_in
from evennia_ai.store.history.record_rows import ConversationKind
from evennia_ai.store.history.windows import GREETING, HEARD_BY

_ANY_DICE: Final = Dice(turn="", conversation="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A greeting of a card and its index.

    Index 0 is the first message, n the n-th alternate greeting. The greetings for groups follow.
    """

    card: Card
    index: int

    def spoken(
        self,
        *,
        npc_name: str,
        values: Mapping[str, str],
        dice: Dice,
        other_names: Collection[str] = (),
    ) -> str:
        """Return the words of the greeting, cleaned like a reply of the NPC.

        "" if nothing is left.
        """
        opening = opening_message(self.card, index=self.index, group=True, values=values, dice=dice)
        if opening is None:
            return ""
        own_names = (self.card.char, npc_name)
        return speech_in(opening.content, own_names=own_names, other_names=other_names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The greeting for each kind of conversation, and the problems with the chosen greeting."""

    of_kind: Mapping[ConversationKind, Greeting]
    problems: tuple[str, ...] = ()


NOT_CHOSEN: Final = Chosen(of_kind={})


def choose_greetings(card: Card | None, index: int | None, *, npc_name: str) -> Chosen:
    """Return the greetings of an NPC for the index that a builder chose. None: no greeting."""
    if card is None or index is None:
        return NOT_CHOSEN
    last = len(greetings(card, group=True)) - 1
    if index > last:
        return _nobody_greeted(f"there is no greeting {index}, only 0 to {last}", npc_name)
    asked = Greeting(card=card, index=index)
    if not _says_something(asked, npc_name):
        return _nobody_greeted(f"greeting {index} says nothing", npc_name)
    if index < len(greetings(card)):
        return Chosen(of_kind={"room": asked, "private": asked})
    return _for_groups(asked, npc_name)


def greeting_record(greeting: Greeting, text: str, *, heard_by: Sequence[str]) -> NewRecord:
    """Return the record of a greeting. `heard_by` are the references of people present."""
    meta: dict[str, Any] = {GREETING: greeting.index}
    if heard_by:
        meta[HEARD_BY] = list(heard_by)
    return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text, meta=meta)


def _for_groups(asked: Greeting, npc_name: str) -> Chosen:
    """Use a group greeting in rooms, and the first message in private."""
    only = f"greeting {asked.index} is for groups only"
    first = Greeting(card=asked.card, index=0)
    if _says_something(first, npc_name):
        problem = f"{only}; a player who whispers gets greeting 0"
        return Chosen(of_kind={"room": asked, "private": first}, problems=(problem,))
    problem = f"{only} and greeting 0 is empty; a player who whispers gets no greeting"
    return Chosen(of_kind={"room": asked}, problems=(problem,))


def _nobody_greeted(why: str, npc_name: str) -> Chosen:
    change = f"change that with card/greeting {npc_name} = <number>, or off"
    return Chosen(of_kind={}, problems=(f"{why}, so nobody is greeted; {change}",))


def _says_something(greeting: Greeting, npc_name: str) -> bool:
    values = {"char": greeting.card.char, "user": "somebody", "speaker": "somebody"}
    return bool(greeting.spoken(npc_name=npc_name, values=values, dice=_ANY_DICE))
