"""What can be wrong with an execution request."""

from evennia_ai.errors import EvenniaAIError


class ExecutionRequestError(EvenniaAIError):
    """An execution request cannot be written as plain values, or not be read back from them.

    `at` is the path of the value that is meant, "" for the request as a whole.
    """

    def __init__(self, at: str, problem: str) -> None:
        self.at = at
        self.problem = problem
        super().__init__(f"execution request{f', {at}' if at else ''}: {problem}")
