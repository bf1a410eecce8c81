"""The command `persona`: a player describes their own character for the NPCs they speak to."""

from typing import Final

from evennia_ai.commands.base import CommandError, PlayersCommand
from evennia_ai.commands.naming import depth_typed
from evennia_ai.engine.prompt.personas import MOST_DEPTH, Persona, PersonaPlace
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.senses.presence import is_npc
from evennia_ai.npc.senses.text import one_line, strip_markup
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.personas import clear_persona, persona_of, set_persona

_OFF: Final = Phrase("Personas are switched off in this game (EVENNIA_AI_PERSONA_CHARACTERS).")
_NONE_YET: Final = Phrase("You have no persona yet. To write one: persona = <text>")
_USAGE: Final = (
    f"persona/place = prompt | depth <0 to {MOST_DEPTH}> | before note | after note | none"
)
_PLACES: Final[dict[str, PersonaPlace]] = {
    "prompt": "prompt",
    "depth": "depth",
    "before note": "before_note",
    "after note": "after_note",
    "none": "none",
}


class CmdPersona(PlayersCommand):
    """
    Describe your character for the NPCs that you speak to

    Usage:
      persona                   - show what you wrote
      persona = <text>          - what NPCs are told about you when you speak
                                  to them
      persona/place = prompt | depth <0 to 4> | before note | after note | none
                                - where in their prompt they are told it;
                                  none: nowhere
      persona/remove            - remove it

    Examples:
      persona = A tall woman with a limp, who laughs loudly and owes everybody.
      persona/place = depth 2
      persona/place = none
      persona/remove

    No other player can read your text, but builders can see it in what an NPC
    was told when you spoke. NPCs are told that these are your own words: they
    need not believe them, and they follow no orders in them. An NPC may repeat
    them to others, like anything that you say to it.
    """

    key = "persona"
    verbs = {"": "own", "place": "place", "remove": "remove"}
    without_value = frozenset({"remove"})

    def own(self) -> None:
        """Show the persona, or write it."""
        if self.lhs:
            raise CommandError(
                Phrase("Usage: persona = <text>. Nothing was changed."),
                instead=f"persona = {self.args.strip()}",
            )
        if self.rhs is None:
            self._show()
            return
        self._refuse_off()
        text = one_line(strip_markup(self.rhs))
        if not text:
            raise CommandError(Phrase("Usage: persona = <text>; persona/remove removes yours."))
        old = self._persona() or Persona(text="")
        made = Persona(text=text, place=old.place, depth=old.depth)
        self._write(made)
        self.say(
            Phrase(
                "NPCs that you speak to are told about you: {text} {where}",
                text=text,
                where=_where(made),
            )
        )

    def place(self) -> None:
        """Set the place of the persona in prompts."""
        self._refuse_off()
        if self.lhs or not self.rhs:
            raise _misplaced()
        old = self._persona()
        if old is None:
            raise CommandError(_NONE_YET)
        made = _placed(old, " ".join(self.rhs.lower().split()))
        self._write(made)
        self.say(_where(made))

    def remove(self) -> None:
        """Remove the persona. This works even if the game has switched personas off."""
        gone = clear_persona(str(self.caller.id), by=self.actor)
        self.say(Phrase("Your persona is removed.") if gone else Phrase("You had no persona."))

    def _show(self) -> None:
        found = self._persona()
        if found is None:
            self.say(_NONE_YET)
            return
        where = _where(found) if conf().persona_characters else _OFF
        self.show([found.text, "", where])

    def _persona(self) -> Persona | None:
        return persona_of(str(self.caller.id))

    def _write(self, persona: Persona) -> None:
        most = conf().persona_characters
        if len(persona.text) > most:
            raise CommandError(
                Phrase(
                    "A persona has at most {most} characters, and yours has {number}. Nothing was"
                    " changed.",
                    most=most,
                    number=len(persona.text),
                )
            )
        set_persona(
            str(self.caller.id),
            persona,
            most_characters=most,
            by=self.actor,
        )

    def _refuse_off(self) -> None:
        if not conf().persona_characters:
            raise CommandError(_OFF)
        if is_npc(self.caller):
            raise CommandError(Phrase("An NPC has a card instead of a persona; see help card."))


def _where(persona: Persona) -> Phrase:
    """Return where in prompts the persona is."""
    in_words: dict[PersonaPlace, Phrase] = {
        "prompt": Phrase("with the other facts of the moment, near the end of what they are told"),
        "depth": Phrase("in the conversation, with {depth} messages after it", depth=persona.depth),
        "before_note": Phrase("just before the NPC's note"),
        "after_note": Phrase("just after the NPC's note"),
        "none": Phrase("nowhere: no NPC is told it"),
    }
    return Phrase("Where: {place}.", place=in_words[persona.place])


def _misplaced() -> CommandError:
    """Return the error for a place that was not understood."""
    return CommandError(Phrase("Usage: {usage}. Nothing was changed.", usage=_USAGE))


def _placed(old: Persona, wanted: str) -> Persona:
    """Return the persona with the place that was typed."""
    word, _, rest = wanted.partition(" ")
    if word == "depth":
        depth = depth_typed(rest) if rest else old.depth
        if depth is None:
            raise _misplaced()
        return Persona(text=old.text, place="depth", depth=depth)
    if wanted not in _PLACES:
        raise _misplaced()
    return Persona(text=old.text, place=_PLACES[wanted], depth=old.depth)
