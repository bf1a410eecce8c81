"""The command `persona`: a player describes their own character for the NPCs they speak to."""

from typing import Final

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.naming import depth_typed
from evennia_ai.engine.prompt.personas import MOST_DEPTH, Persona, PersonaPlace
from evennia_ai.npc.senses.presence import is_npc
from evennia_ai.npc.senses.text import one_line, strip_markup
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.personas import clear_persona, persona_of, set_persona

_OFF: Final = "Personas are switched off in this game (EVENNIA_AI_PERSONA_CHARACTERS)."
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
_IN_WORDS: Final[dict[PersonaPlace, str]] = {
    "prompt": "with the other facts of the moment, near the end of what they are told",
    "depth": "in the conversation, with {depth} messages after it",
    "before_note": "just before the NPC's note",
    "after_note": "just after the NPC's note",
    "none": "nowhere: no NPC is told it",
}


class CmdPersona(StrictCommand):
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
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    verbs = {"": "own", "place": "place", "remove": "remove"}
    without_value = frozenset({"remove"})

    def own(self) -> None:
        """Show the persona, or write it."""
        if self.lhs:
            raise CommandError(
                "Usage: persona = <text>. Nothing was changed.",
                instead=f"persona = {self.args.strip()}",
            )
        if self.rhs is None:
            self._show()
            return
        self._refuse_off()
        text = one_line(strip_markup(self.rhs))
        if not text:
            raise CommandError("Usage: persona = <text>; persona/remove removes yours.")
        old = self._persona() or Persona(text="")
        made = Persona(text=text, place=old.place, depth=old.depth)
        self._write(made)
        self.say(f"NPCs that you speak to are told about you: {text} {self._where(made)}")

    def place(self) -> None:
        """Set the place of the persona in prompts."""
        self._refuse_off()
        if self.lhs or not self.rhs:
            raise CommandError(f"Usage: {_USAGE}. Nothing was changed.")
        old = self._persona()
        if old is None:
            raise CommandError("You have no persona yet. To write one: persona = <text>")
        made = _placed(old, " ".join(self.rhs.lower().split()))
        self._write(made)
        self.say(self._where(made))

    def remove(self) -> None:
        """Remove the persona. This works even if the game has switched personas off."""
        gone = clear_persona(str(self.caller.id), by=self.actor)
        self.say("Your persona is removed." if gone else "You had no persona.")

    def _show(self) -> None:
        found = self._persona()
        if found is None:
            self.say("You have no persona yet. To write one: persona = <text>")
            return
        where = self._where(found) if conf().persona_characters else _OFF
        self.show([found.text, "", where])

    def _persona(self) -> Persona | None:
        return persona_of(str(self.caller.id))

    def _write(self, persona: Persona) -> None:
        set_persona(
            str(self.caller.id),
            persona,
            most_characters=conf().persona_characters,
            by=self.actor,
        )

    def _where(self, persona: Persona) -> str:
        return f"Where: {_IN_WORDS[persona.place].format(depth=persona.depth)}."

    def _refuse_off(self) -> None:
        if not conf().persona_characters:
            raise CommandError(_OFF)
        if is_npc(self.caller):
            raise CommandError("An NPC has a card instead of a persona; see help card.")


def _placed(old: Persona, wanted: str) -> Persona:
    """Return the persona with the place that was typed."""
    word, _, rest = wanted.partition(" ")
    if word == "depth":
        depth = depth_typed(rest) if rest else old.depth
        if depth is None:
            raise CommandError(f"Usage: {_USAGE}. Nothing was changed.")
        return Persona(text=old.text, place="depth", depth=depth)
    if wanted not in _PLACES:
        raise CommandError(f"Usage: {_USAGE}. Nothing was changed.")
    return Persona(text=old.text, place=_PLACES[wanted], depth=old.depth)
