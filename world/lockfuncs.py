"""Lock functions of the demo. Evennia makes every function of this module a lock function."""

from typing import Any


def found(accessing_obj: Any, accessed_obj: Any, *args: str, **kwargs: Any) -> bool:
    """Return True if the character has found this out: `traverse:found(letter)`."""
    return accessing_obj.tags.has(args[0], category="found")


def tide(accessing_obj: Any, accessed_obj: Any, *args: str, **kwargs: Any) -> bool:
    """Return True in these parts of the evening: `traverse:tide(low)`."""
    from world.evening import part_now

    return part_now().id in args
