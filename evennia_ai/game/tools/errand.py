"""The tool to look up what came of an errand: of a tool that took long."""

from pydantic import Field

from evennia_ai.errors import NotStoredError
from evennia_ai.game.tools.tool import Refused, Tool, ToolArguments, Use
from evennia_ai.store.history import errands


class ErrandResult(Tool):
    """Tells what came of an errand that was begun in the same conversation.

    An NPC that has a tool which takes long has this one as well, whether or not it was chosen.
    """

    name = "errand_result"
    description = "Learn what came of an errand of yours, once you were told that it has ended."

    class Arguments(ToolArguments):
        number: int = Field(ge=1, le=999_999_999, description="the number of the errand")

    def run(self, use: Use, arguments: Arguments) -> str:
        """The result, or that there is none yet."""
        try:
            errand = errands.errand(use.mind.ref, arguments.number)
        except NotStoredError as error:
            raise Refused(f"There is no errand {arguments.number}.") from error
        if errand.conversation.id != use.conversation.id:
            raise Refused(f"There is no errand {arguments.number}.")
        if errand.state == "open":
            return f"Errand {errand.number} is not done yet."
        how = "is done" if errand.state == "done" else "came to nothing"
        return f"Errand {errand.number} {how}: {errand.result}"
