"""Errors of the store."""

from collections.abc import Sequence

from evennia_ai.errors import EditConflictError, EvenniaAIError


class StoreError(EvenniaAIError):
    """The database did not do what was asked; nothing was written."""


class HistoryConflictError(StoreError):
    """Another writer appended to the conversation first; nothing was written."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(
            f"somebody else wrote to {conversation} at the same moment; nothing of this was"
            " written: read the history again and repeat"
        )


class TurnClosedError(StoreError):
    """The turn was already finished, failed or interrupted."""


class PageConflictError(EditConflictError):
    """A page has another revision than the one that was edited; nothing was written."""


class NotStoredError(StoreError):
    """There is no card, lorebook, knowledge base, page, revision or turn of this name or number."""

    def __init__(self, what: str, wanted: object, known: Sequence[str] = ()) -> None:
        self.what = what
        self.wanted = wanted
        near = f"; there are {', '.join(known)}" if known else ""
        super().__init__(f"there is no {what} {wanted!r}{near}")
