"""Short ways to write the memories that tests are about."""

from typing import Any

from evennia_ai.memory.memories import Memory

ANNA, BEN = "7", "8"


def a_memory(text: str = "The ferry leaves at dawn.", id: int = 1, **fields: Any) -> Memory:
    return Memory(id=id, text=text, **fields)
