"""The author's note: a short text a builder keeps in front of the model, every so often."""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.prompt.components import HISTORY_ID, PromptComponent, Trust
from evennia_ai.prompt.expansion import CompiledComponent, CompiledComponents
from evennia_ai.prompt.messages import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsNote:
    """A note at `depth` messages from the newest.

    Due at every `every`-th message of role user; 1 is always, 0 never. `scanned` lets its text,
    where it is due and as it goes in, wake lore.
    """

    content: str
    depth: int = 4
    role: Role = "system"
    every: int = 1
    scanned: bool = False
    trust: Trust = "builder"
    revision: int = 0

    def is_due(self, user_messages: int) -> bool:
        """Whether the note goes in when this many messages of role user were said."""
        if self.every <= 1:
            return self.every == 1
        return user_messages >= self.every and user_messages % self.every == 0


class Notes:
    """The author's notes of a conversation, compiled once."""

    __slots__ = ("compiled", "notes")

    def __init__(self, notes: Sequence[AuthorsNote] = ()) -> None:
        self.notes = tuple(notes)
        self.compiled = CompiledComponents(
            CompiledComponent(_component(note, i), origin=f"note:{i}")
            for i, note in enumerate(self.notes)
        )


def _component(note: AuthorsNote, index: int) -> PromptComponent:
    """The note as a component of the history band."""
    return PromptComponent(
        id=HISTORY_ID,
        key=f"note_{index}",
        content=note.content,
        role=note.role,
        injection_depth=note.depth,
        placement="history",
        trust=note.trust,
        revision=note.revision,
    )
