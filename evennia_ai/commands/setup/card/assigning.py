"""The switches of `card` that concern an NPC: which card it plays, which greeting it opens with."""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.cards.card import Card, greetings
from evennia_ai.cards.loading import load_card
from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.naming import npc_named, whole_number
from evennia_ai.commands.setup.card import shown
from evennia_ai.commands.setup.card.shown import card_named, plain_name
from evennia_ai.commands.strict import CommandError
from evennia_ai.game.senses.presence import NPC
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import card_revisions, cards
from evennia_ai.store.authored.cards import Assignment, StoredCard, card_or_none, get_card
from evennia_ai.text.columns import WIDTH, clipped, first_line

_MOST_GREETINGS: Final = 60


class CardAssign(CardWork):
    """Giving NPCs their cards."""

    @waits
    def assign(self) -> Steps:
        """Let an NPC play a card that is in force, once it is seen that the card can be read."""
        usage = "card/assign <npc> = <card>"
        typed, wanted = self.both(usage)
        npc = npc_named(self.caller, typed)
        name = card_named(plain_name(wanted, usage)).name
        yield self._read(get_card(name))
        _check_there(npc)
        before = cards.assignment_of(npc.ai.ref)
        card = cards.assign(npc.ai.ref, name, by=self.typed_by)
        self.read_ahead(card)
        instead = f", no longer {before.card}" if before and before.card != name else ""
        self.say(
            f"{npc.key} plays the card {card.name} (revision {card.revision},"
            f" {shown.may_in_words(card.grants)}) from now on{instead}."
            f" It opens with no greeting; card/greeting {npc.key} lists them."
        )

    def unassign(self) -> None:
        """Let an NPC play no card."""
        npc = npc_named(self.caller, self.wanted("card/unassign <npc>"))
        if self.rhs is not None:
            raise CommandError("Usage: card/unassign <npc>")
        before = _played(npc)
        cards.unassign(npc.ai.ref, by=self.typed_by)
        self.say(f"{npc.key} plays the card {before.card} no longer, and no other one.")

    @waits
    def greeting(self) -> Steps:
        """Set the greeting that an NPC opens its conversations with; without a value, list them."""
        usage = "card/greeting <npc> [= <number> | off]"
        npc = npc_named(self.caller, self.wanted(usage))
        played = _played(npc)
        if self.rhs == "":
            raise CommandError(f"Usage: {usage}")
        if self.rhs is not None and self.rhs.lower() == "off":
            cards.set_greeting(npc.ai.ref, None, by=self.typed_by)
            self.say(f"{npc.key} opens with no greeting from now on.")
            return
        index = None if self.rhs is None else whole_number(self.rhs, what="greeting", words="off")
        stored = get_card(played.card)
        card = yield self._read(stored)
        _check_there(npc)
        if index is None:
            self.show("\n".join(_listed(npc, played, card)))
            return
        text = _greeting(card, index, npc)
        now = card_or_none(played.card)
        is_same_file = now is not None and now.sha256 == stored.sha256
        if cards.assignment_of(npc.ai.ref) != played or not is_same_file:
            raise CommandError(f"Somebody changed what {npc.key} plays meanwhile; look again.")
        cards.set_greeting(npc.ai.ref, index, by=self.typed_by)
        only = " where several may speak" if index >= len(greetings(card)) else ""
        self.say(f"{npc.key} opens each new conversation{only} with greeting {index}: {text}")

    def _read(self, card: StoredCard) -> Any:
        """The card, read beside the game."""
        _, file = card_revisions.revision(card.name, card.revision)
        limits = conf().card_limits
        return self.worked(
            f"Reading card {card.name}",
            lambda progress: load_card(file.content, limits=limits, progress=progress).card,
        )


def _check_there(npc: NPC) -> None:
    """CommandError where the NPC was deleted while its card was read."""
    if npc.pk is None:
        raise CommandError("The NPC was deleted meanwhile; nothing was changed.")


def _played(npc: NPC) -> Assignment:
    played = cards.assignment_of(npc.ai.ref)
    if played is None:
        raise CommandError(f"{npc.key} plays no card; card/assign {npc.key} = <card> gives one.")
    return played


def _greeting(card: Card, index: int, npc: NPC) -> str:
    """The beginning of a greeting that says something."""
    known = greetings(card, group=True)
    if index >= len(known) or not known[index].strip():
        there = ", ".join(str(at) for at, text in enumerate(known[:40]) if text.strip())
        raise CommandError(
            f"Card {card.name} has no greeting {index}; it has {there or 'none'}."
            f" card/greeting {npc.key} lists them. Nothing was changed."
        )
    return clipped(first_line(known[index]), 200)


def _listed(npc: NPC, played: Assignment, card: Card) -> Iterator[str]:
    """The greetings by number, the first message being 0; those for groups come last."""
    yield f"Greetings of the card {played.card}, which {npc.key} plays:"
    own, known = len(greetings(card)), greetings(card, group=True)
    said = [(index, text) for index, text in enumerate(known) if text.strip()]
    for index, text in said[:_MOST_GREETINGS]:
        mark = "*" if index == played.greeting else " "
        group = "(groups) " if index >= own else ""
        yield clipped(f"{mark}{index:4}  {group}{first_line(text)}", WIDTH)
    if len(said) > _MOST_GREETINGS:
        yield f"      and {len(said) - _MOST_GREETINGS} more"
    if not said:
        yield "      none"
    on = "no greeting" if played.greeting is None else f"greeting {played.greeting}"
    yield f"{npc.key} opens with {on}; card/greeting {npc.key} = <number> or off changes that."
