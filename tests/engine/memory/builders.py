"""Builders of memories for tests."""

from typing import Any

from evennia_ai.engine.memory.memories import Memory

ANNA, BEN = "7", "8"


def a_memory(text: str = "The ferry leaves at dawn.", **fields: Any) -> Memory:
    fields.setdefault("id", 1)
    return Memory(text=text, **fields)
