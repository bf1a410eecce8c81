"""NPCs with a mind: `AIMixin` for any character class, `AINPC` ready to use."""

from typing import Any

from evennia.objects.objects import DefaultCharacter
from evennia.typeclasses.attributes import AttributeProperty
from evennia.utils.utils import lazy_property

from evennia_ai.game.handler import AIHandler


class AIMixin:
    """Gives a character a mind. Put it before the character class.

    `ai_enabled` lets it answer; `fallback_line` is said when there is no reply, "" for the
    game's; `ai_partner` is who `{{user}}` is in a room, "" for a visitor. It is called by its name
    and its aliases.
    """

    ai_enabled = AttributeProperty(True, autocreate=False)
    fallback_line = AttributeProperty("", autocreate=False)
    ai_partner = AttributeProperty("", autocreate=False)

    @lazy_property
    def ai(self) -> AIHandler:
        """The mind."""
        return AIHandler(self)

    def at_msg_receive(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> bool:
        """Evennia's hook: hear what is received."""
        received = super().at_msg_receive(text=text, from_obj=from_obj, **kwargs)  # type: ignore[misc]
        if received:
            self.ai.receive(text, from_obj)
        return bool(received)

    def at_idmapper_flush(self) -> bool:
        """Evennia's hook: an NPC in the middle of something stays in memory."""
        flushes = super().at_idmapper_flush()  # type: ignore[misc]
        return bool(flushes) and not ("ai" in self.__dict__ and self.ai.is_busy)


class AINPC(AIMixin, DefaultCharacter):
    """A character that is nobody's, with a mind."""

    @classmethod
    def create(cls, key: str, account: Any = None, **kwargs: Any) -> tuple[Any, list[str]]:
        """Evennia's way to make one; whoever makes it spends no character of their account."""
        created: tuple[Any, list[str]] = super().create(key, account=None, **kwargs)
        return created

    @classmethod
    def get_default_lockstring(cls, **kwargs: Any) -> str:
        """Evennia's hook: builders, not owners, look after it."""
        return "puppet:perm(Developer);delete:perm(Builder);edit:perm(Builder)"
