"""The typeclasses of the demo: rooms, exits and things that take part in its evening."""

from typing import Any, Final

from evennia.objects.objects import DefaultExit, DefaultObject, DefaultRoom
from evennia.utils.create import create_object

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.memory.memories import MOST_IMPORTANT, Memory
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import HasMind, is_character, known_ref
from evennia_ai.npc.speech.output import escape_block, show_pose
from evennia_ai.npc.tools.items import hand_over
from evennia_ai.npc.upkeep.remembering import keep_memory
from evennia_ai.npc.writings import Writing, writing_by
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.memories import NEW
from world.evening import content, learn, part_now, tagged

BY: Final = trusted("the demo world")


def is_visitor(someone: Any) -> bool:
    """True for a character of a player, false for NPCs, things and None."""
    return someone is not None and is_character(someone) and not isinstance(someone, HasMind)


class Place(DefaultRoom):
    """A room whose description has a sentence for some parts of the evening.

    `db.at` maps the part to the sentence. Who enters learns `db.finding`.
    """

    def get_display_desc(self, looker: Any, **kwargs: Any) -> str:
        """Return the description for this part of the evening. Evennia calls this hook."""
        more = (self.db.at or {}).get(part_now().id, "")
        return " ".join(text for text in (super().get_display_desc(looker, **kwargs), more) if text)

    def at_object_receive(self, moved_obj: Any, source_location: Any, **kwargs: Any) -> None:
        """Let a player who enters learn the finding. Evennia calls this hook."""
        super().at_object_receive(moved_obj, source_location, **kwargs)
        if is_visitor(moved_obj):
            learn(moved_obj, self.db.finding or "")


class Way(DefaultExit):
    """An exit that says why it lets somebody not pass: `db.bars` has pairs of a lock and a text."""

    def at_failed_traverse(self, traversing_object: Any, **kwargs: Any) -> None:
        """Show the text of the first bar that holds. Evennia calls this hook."""
        for lock, text in self.db.bars or ():
            if not self.locks.check_lockstring(traversing_object, f"dummy:{lock}"):
                traversing_object.msg(escape_block(text))
                return
        super().at_failed_traverse(traversing_object, **kwargs)


class Scenery(DefaultObject):
    """A thing to look at. Who looks at it learns `db.finding`."""

    def at_desc(self, looker: Any = None, **kwargs: Any) -> None:
        """Let a player who looks learn the finding. Evennia calls this hook."""
        super().at_desc(looker=looker, **kwargs)
        if is_visitor(looker):
            learn(looker, self.db.finding or "")


class Basket(Scenery):
    """A basket of letters. Who takes it has one of them; the basket stays."""

    def at_pre_get(self, getter: Any, **kwargs: Any) -> bool:
        """Give one letter to somebody who has none. Evennia calls this hook."""
        if any(isinstance(one, GreyLetter) for one in getter.contents):
            getter.msg("You have one of the letters. They are all in the same hand.")
            return False
        letter = content().letter
        create_object(
            GreyLetter,
            key=letter.key,
            aliases=list(letter.aliases),
            location=getter,
            home=self.location,
            attributes=[
                ("desc", letter.desc),
                ("written_text", letter.text),
                ("writer_name", letter.writer),
            ],
        )
        getter.msg("You take one of the seven letters. Nobody here counts to seven. (read letter)")
        return False


class GreyLetter(Writing):
    """Brida's letter. Whom a player gives it to decides how the evening goes on."""

    def at_read(self, reader: Any) -> None:
        """Let the reader learn what the letter proves. A hook of evennia_ai."""
        learn(reader, "letter")

    def at_post_move(self, source_location: Any, **kwargs: Any) -> None:
        """Let Brida or Pell act on the letter that somebody gave them. Evennia calls this hook."""
        super().at_post_move(source_location, **kwargs)
        keeper, giver = self.location, source_location
        if not is_visitor(giver):
            return
        if keeper == tagged("npc:brida"):
            show_pose(keeper, "reads one line, opens the stove, and watches the letter to the end.")
            learn(giver, "trusted")
            _let_remember(giver, "{name} gave Brida her letter back, and told nobody about it.")
        elif keeper == tagged("npc:pell"):
            show_pose(keeper, "changes the round cap for the peaked one, reads, and sits down.")
            learn(giver, "spoilt")
            _let_remember(giver, "{name} handed Brida's letter to Pell as harbourmaster.")
            _give_receipt(keeper, giver)
        else:
            return
        # Nobody has the letter any more. It is not deleted here, because `give` still names it.
        self.location = None


def _let_remember(giver: Any, text: str) -> None:
    """Let the people of the salt run remember what a player did."""
    for npc in filter(None, (tagged(f"npc:{one.id}") for one in content().npcs if one.factions)):
        now = hours_now()
        memory = Memory(
            id=NEW,
            text=text.format(name=label_of(npc, giver)),
            about=known_ref(npc, giver),
            importance=MOST_IMPORTANT,
            created_at=now,
            recalled_at=now,
            place_ref=str(npc.location.id) if npc.location else "",
            author=BY.name,
        )
        keep_memory(npc.ai.ref, memory, by=BY, most=conf().memory.kept)


def _give_receipt(pell: Any, giver: Any) -> None:
    letter = content().letter
    text = letter.receipt_text.format(name=giver.key)
    made = writing_by(pell, form="letter", title=letter.receipt_title, text=text)
    try:
        hand_over(pell, made, giver)
    except EvenniaAIError:
        made.delete()
        raise
