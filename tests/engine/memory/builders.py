"""Short ways to write the memories that tests are about."""

from typing import Any

from evennia_ai.engine.memory.memories import Memory

ANNA, BEN = "7", "8"


def a_memory(text: str = "The ferry leaves at dawn.", **fields: Any) -> Memory:
    fields.setdefault("id", 1)
    return Memory(text=text, **fields)
