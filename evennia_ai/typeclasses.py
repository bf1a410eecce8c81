"""The typeclasses of this package.

`AIMixin` gives any character class a mind; `AINPC` is ready to use. Games subclass these classes
and their databases name them, so this module must keep its path.
"""

from typing import Any

from django.utils.translation import gettext
from evennia.objects.objects import DefaultCharacter
from evennia.typeclasses.attributes import AttributeProperty
from evennia.utils.utils import lazy_property

from evennia_ai.npc.mind.company import company_of, read_together
from evennia_ai.npc.mind.handler import AIHandler
from evennia_ai.npc.runtime import current
from evennia_ai.npc.senses.languages import read_by, translate
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
    """The line that the NPC says when a model gives no reply. Empty: the game's setting."""
    ai_partner = AttributeProperty("", autocreate=False)
    """The name that replaces `{{user}}` in conversations with a whole room. Empty: "a visitor"."""

    @lazy_property
    def ai(self: Any) -> AIHandler:
        """The NPC's mind.

        The minds of all NPCs in the same room are made together, with few queries.
        """
        company = company_of(self)
        read_together(company)
        for one in company:
            vars(one)[MIND] = AIHandler(one, current)
        mind: AIHandler = vars(self)[MIND]
        return mind

    @lazy_property
    def witness(self: Any) -> Witness:
        """The NPC's observer, which collects what it sees happening."""
        return Witness(self, lambda: current.runtime.clock)

    # Methods that a game may override.

    def understands(self, language: str) -> bool:
        """Return True if the NPC understands `language`.

        Every NPC understands "", the common language.
        """
        languages = self.ai.settings.languages
        if not language or languages is None:
            return True
        return language.casefold() in {known.casefold() for known in languages}

    def why_unable(self) -> str:
        """Return why the NPC can neither act nor answer, such as "it is dead", or ""."""
        return ""

    guise_of = mask_of
    """Return how a disguised person looks, such as "a masked man"; "" without a disguise.

    While a person is disguised, the NPC knows nothing about who they really are.
    """
    called_by = recog_names
    """`called_by(speaker)`: return by which further names `speaker` calls the NPC."""

    # Hooks that Evennia calls.

    def at_msg_receive(self: Any, text: Any = None, from_obj: Any = None, **kwargs: Any) -> bool:
        """Pass a received message to the NPC's mind. A hook of Evennia."""
        received = super().at_msg_receive(text=text, from_obj=from_obj, **kwargs)  # type: ignore[misc]
        if received:
            call_safely(self, lambda: current.runtime.ticker.stirs(self))
            call_safely(self, self.witness.hears, text, from_obj)
            self.ai.receive(text, from_obj)
        return bool(received)

    def get_display_footer(self: Any, looker: Any, **kwargs: Any) -> str:
        """Return the end of what `look` shows, with the mark of an NPC that a model speaks for.

        A hook of Evennia.
        """
        footer = str(super().get_display_footer(looker, **kwargs))  # type: ignore[misc]
        mark = "" if self.has_account else self.ai.disclosure.mark
        return "\n".join(line for line in (footer, translate(mark, read_by(looker))) if line)

    def process_language(self: Any, text: str, speaker: Any, language: str, **kwargs: Any) -> str:
        """Return words in a language as the NPC hears them.

        A hook of Evennia's roleplaying contrib.
        """
        inherited = getattr(super(), "process_language", None)
        shown = inherited(text, speaker, language, **kwargs) if inherited else text
        return rendered_for(self, speaker, language, words=text, rendered=str(shown))

    def at_object_receive(
        self: Any, moved_obj: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Note that the NPC was given something. A hook of Evennia."""
        super().at_object_receive(  # type: ignore[misc]
            moved_obj, source_location, move_type=move_type, **kwargs
        )
        call_safely(self, self.witness.is_given, moved_obj, source_location)

    def at_desc(self: Any, looker: Any = None, **kwargs: Any) -> None:
        """Note that somebody looks at the NPC. A hook of Evennia."""
        super().at_desc(looker=looker, **kwargs)  # type: ignore[misc]
        call_safely(self, self.witness.is_looked_at, looker)

    def at_post_move(
        self: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Note that the NPC came from another place. A hook of Evennia."""
        super().at_post_move(source_location, move_type=move_type, **kwargs)  # type: ignore[misc]
        call_safely(self, self.witness.comes_from, source_location)

    def at_init(self: Any) -> None:
        """Take the NPC from its player after a crash. A hook of Evennia.

        After a crash the database still names the account that played the NPC last.
        """
        super().at_init()  # type: ignore[misc]
        if self.db_account_id and not self.sessions.count():
            self._lose_account()

    def at_post_puppet(self: Any, **kwargs: Any) -> None:
        """Let an account play the NPC without announcing an arrival. A hook of Evennia.

        Evennia announces that a character has entered the game, but an NPC was there already.
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
        """Leave the NPC in its room when its player leaves. A hook of Evennia.

        Evennia removes a character that nobody plays from its room. That happens here only if the
        NPC is one of the account's own characters. After a crash Evennia passes no account.
        """
        if is_playable_by(self, account or self.account):
            super().at_post_unpuppet(account, session=session, **kwargs)  # type: ignore[misc]
        elif not self.sessions.count():
            self.attributes.remove("prelogout_location")
        if not self.sessions.count():
            self._lose_account()

    def _lose_account(self: Any) -> None:
        """Remove the account, and with it a superuser's rights, which Evennia would keep."""
        del self.account
        self.locks.cache_lock_bypass(self)

    def at_object_delete(self) -> bool:
        """End the NPC's mind if the NPC is deleted. A hook of Evennia."""
        deletes = super().at_object_delete()  # type: ignore[misc]
        if deletes:
            self.ai.gone()
        return bool(deletes)

    def at_idmapper_flush(self) -> bool:
        """Return False to keep a busy NPC in memory. A hook of Evennia."""
        flushes = super().at_idmapper_flush()  # type: ignore[misc]
        return bool(flushes) and not self._is_busy

    @property
    def _is_busy(self) -> bool:
        has_seen = "witness" in self.__dict__ and self.witness.is_waiting
        return has_seen or ("ai" in self.__dict__ and self.ai.is_busy)


class AINPC(AIMixin, DefaultCharacter):
    """A character with a mind. It belongs to no account."""

    @classmethod
    def create(cls, key: str, account: Any = None, **kwargs: Any) -> tuple[Any, list[str]]:
        """Create an NPC that is not one of the creating account's characters."""
        created: tuple[Any, list[str]] = super().create(key, account=None, **kwargs)
        return created

    @classmethod
    def get_default_lockstring(cls, **kwargs: Any) -> str:
        """Return locks that let builders edit the NPC. A hook of Evennia."""
        return "puppet:perm(Developer);delete:perm(Builder);edit:perm(Builder)"
