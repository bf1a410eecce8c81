"""What of Evennia's objects is used here, so that what a function needs of one can be checked."""

from typing import Any, Protocol


class Character(Protocol):
    """A character of Evennia, of a player or ours; Evennia has no types of its own."""

    id: Any
    pk: Any
    key: Any
    location: Any
    home: Any
    aliases: Any
    attributes: Any
    tags: Any
    permissions: Any
    locks: Any
    has_account: Any

    def access(self, accessing_obj: Any, access_type: str = ..., **kwargs: Any) -> bool: ...

    def at_pre_say(self, message: str, **kwargs: Any) -> Any: ...

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str: ...

    def msg(self, text: Any = None, from_obj: Any = None, **kwargs: Any) -> None: ...
