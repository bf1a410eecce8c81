"""What of Evennia's characters is used here; Evennia has no types of its own."""

from typing import Any, Protocol


class HasMind:
    """Marks the typeclasses of characters with a mind: `AIMixin` is one, and what is made of it."""


class NPC(Protocol):
    """A character of ours, as all who deal with it see it; `AINPC` is one.

    What Evennia gives is of any type. `ai` is its mind (`game.protocols.Mind`).
    """

    id: Any
    pk: Any
    key: Any
    location: Any
    home: Any
    db: Any
    aliases: Any
    attributes: Any
    contents: Any
    locks: Any
    permissions: Any
    tags: Any

    ai: Any
    ai_enabled: Any
    ai_partner: Any
    fallback_line: Any
    has_account: Any
    is_superuser: Any
    witness: Any

    def access(self, accessing_obj: Any, access_type: str = ..., **kwargs: Any) -> bool: ...

    def at_look(self, target: Any, **kwargs: Any) -> Any: ...

    def at_pre_say(self, message: str, **kwargs: Any) -> Any: ...

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> Any: ...

    def msg(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> None: ...

    def understands(self, language: str) -> bool: ...

    def why_unable(self) -> str: ...
