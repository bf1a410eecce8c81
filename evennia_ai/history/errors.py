"""Errors of the history."""

from evennia_ai.prompt.errors import EvenniaAIError


class AppendOnlyError(EvenniaAIError):
    """A record would be changed or removed."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(
            f"records of the history are never {action}; append a new record that says what is so"
        )


class ReplayError(EvenniaAIError):
    """A turn cannot be rebuilt from its manifest and the records."""
