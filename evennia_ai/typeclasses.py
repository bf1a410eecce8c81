"""The classes that a game subclasses or names in its database; this path stays.

`AIMixin` gives any character class a mind, `AINPC` is ready to use.
"""

from typing import Any

from django.utils.translation import gettext
from evennia.objects.objects import DefaultCharacter
from evennia.typeclasses.attributes import AttributeProperty
from evennia.utils.utils import lazy_property

from evennia_ai.npc.mind.company import company_of, read_together
from evennia_ai.npc.mind.handler import AIHandler
from evennia_ai.npc.runtime import current
from evennia_ai.npc.senses.perception import AISpeakerMixin, rendered_for
from evennia_ai.npc.senses.presence import MIND, HasMind, is_playable_by, mask_of, recog_names
from evennia_ai.npc.senses.witness import AIRoomMixin, Witness, call_safely

__all__ = ["AINPC", "AIMixin", "AIRoomMixin", "AISpeakerMixin"]


class AIMixin(HasMind):
    """A mixin that gives any character class a mind. Put it before the character class.

    People address the NPC by its name and its aliases.
    """

    ai_enabled = AttributeProperty(True, autocreate=False)
    """True if the NPC may answer."""
    fallback_line = AttributeProperty("", autocreate=False)
    """The line it says when a model gives no reply. Empty: the game's line."""
    ai_partner = AttributeProperty("", autocreate=False)
    """The name that `{{user}}` becomes when it talks with a room. Empty: "a visitor"."""

    @lazy_property
    def ai(self: Any) -> AIHandler:
        """Its mind. The minds of all NPCs in the room are made together, with few queries."""
        company = company_of(self)
        read_together(company)
        for one in company:
            vars(one)[MIND] = AIHandler(one, current)
        mind: AIHandler = vars(self)[MIND]
        return mind

    @lazy_property
    def witness(self: Any) -> Witness:
        """Its eyes: they collect what it sees happen."""
        return Witness(self, lambda: current.runtime.clock)

    # For a game to override

    def understands(self, language: str) -> bool:
        """Return True if it understands `language`. Everybody understands "", the common one."""
        languages = self.ai.settings.languages
        if not language or languages is None:
            return True
        return language.casefold() in {known.casefold() for known in languages}

    def why_unable(self) -> str:
        """Return why it can neither act nor answer now, such as "it is dead"; "" if it can."""
        return ""

    guise_of = mask_of
    """Return how a person looks to it who is disguised, such as "a masked man"; "" for nobody.

    While a person wears a guise, the NPC knows nothing of the person behind it."""
    called_by = recog_names
    """`called_by(speaker)`: what they call it beside its name, aliases and short description."""

    # Evennia's hooks

    def at_msg_receive(self: Any, text: Any = None, from_obj: Any = None, **kwargs: Any) -> bool:
        """Evennia's hook: hear what is received."""
        received = super().at_msg_receive(text=text, from_obj=from_obj, **kwargs)  # type: ignore[misc]
        if received:
            call_safely(self, lambda: current.runtime.ticker.stirs(self))
            call_safely(self, self.witness.hears, text, from_obj)
            self.ai.receive(text, from_obj)
        return bool(received)

    def process_language(self: Any, text: str, speaker: Any, language: str, **kwargs: Any) -> str:
        """The hook of Evennia's roleplaying contrib: words in a language, as it hears them."""
        inherited = getattr(super(), "process_language", None)
        shown = inherited(text, speaker, language, **kwargs) if inherited else text
        return rendered_for(self, speaker, language, words=text, rendered=str(shown))

    def at_object_receive(
        self: Any, moved_obj: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Evennia's hook: something came into its hands."""
        super().at_object_receive(  # type: ignore[misc]
            moved_obj, source_location, move_type=move_type, **kwargs
        )
        call_safely(self, self.witness.is_given, moved_obj, source_location)

    def at_desc(self: Any, looker: Any = None, **kwargs: Any) -> None:
        """Evennia's hook: somebody looks at it."""
        super().at_desc(looker=looker, **kwargs)  # type: ignore[misc]
        call_safely(self, self.witness.is_looked_at, looker)

    def at_post_move(
        self: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Evennia's hook: it came to another place."""
        super().at_post_move(source_location, move_type=move_type, **kwargs)  # type: ignore[misc]
        call_safely(self, self.witness.comes_from, source_location)

    def at_init(self: Any) -> None:
        """Evennia's hook: the object was loaded.

        After a crash the database still has the account that played the NPC last.
        """
        super().at_init()  # type: ignore[misc]
        if self.db_account_id and not self.sessions.count():
            self._lose_account()

    def at_post_puppet(self: Any, **kwargs: Any) -> None:
        """Evennia's hook: an account begins to play it.

        Evennia announces that a character entered the game. An NPC was there already.
        """
        if is_playable_by(self, self.account):
            super().at_post_puppet(**kwargs)  # type: ignore[misc]
            return
        self.msg(gettext("\nYou become |c{name}|n.\n").format(name=self.key))
        if self.location is not None:
            self.msg((self.at_look(self.location), {"type": "look"}), options=None)

    def at_post_unpuppet(
        self: Any, account: Any = None, session: Any = None, **kwargs: Any
    ) -> None:
        """Evennia's hook: a session stops playing it.

        Evennia puts away a character that nobody plays. An NPC stays where it is, unless the
        account has it as a character of its own. After a crash Evennia gives no account.
        """
        if is_playable_by(self, account or self.account):
            super().at_post_unpuppet(account, session=session, **kwargs)  # type: ignore[misc]
        elif not self.sessions.count():
            self.attributes.remove("prelogout_location")
        if not self.sessions.count():
            self._lose_account()

    def _lose_account(self: Any) -> None:
        """Take back what the character has from an account: Evennia keeps a superuser's rights."""
        del self.account
        self.locks.cache_lock_bypass(self)

    def at_object_delete(self) -> bool:
        """Evennia's hook: it is about to be deleted, unless somebody minds."""
        deletes = super().at_object_delete()  # type: ignore[misc]
        if deletes:
            self.ai.gone()
        return bool(deletes)

    def at_idmapper_flush(self) -> bool:
        """Keep a busy NPC in memory. A hook of Evennia."""
        flushes = super().at_idmapper_flush()  # type: ignore[misc]
        return bool(flushes) and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        has_seen = "witness" in self.__dict__ and self.witness.is_waiting
        return has_seen or ("ai" in self.__dict__ and self.ai.is_busy)


class AINPC(AIMixin, DefaultCharacter):
    """A character with a mind that belongs to no account."""

    @classmethod
    def create(cls, key: str, account: Any = None, **kwargs: Any) -> tuple[Any, list[str]]:
        """Create an NPC. It does not count as a character of the account that creates it."""
        created: tuple[Any, list[str]] = super().create(key, account=None, **kwargs)
        return created

    @classmethod
    def get_default_lockstring(cls, **kwargs: Any) -> str:
        """Let builders edit it, not an owner. A hook of Evennia."""
        return "puppet:perm(Developer);delete:perm(Builder);edit:perm(Builder)"
