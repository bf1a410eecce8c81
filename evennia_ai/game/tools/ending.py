"""The tool to end a conversation."""

from evennia_ai.game.text import in_sentence
from evennia_ai.game.tools.tool import Refused, Tool, ToolArguments, Use


class EndConversation(Tool):
    """Ends being in conversation with whoever is answered: they have to call the NPC again."""

    name = "end_conversation"
    description = (
        "End the conversation with whoever you answer; say your last words in your reply."
        " You still hear them, and answer when they call you by your name."
    )
    ends_turn = True

    def run(self, use: Use, arguments: ToolArguments) -> str:
        """Wait for nothing more from the speaker."""
        if not use.event.speaker_ref:
            raise Refused("You are in conversation with nobody.")
        use.mind.disengage(use.event.speaker_ref)
        return f"You ended the conversation with {in_sentence(use.event.speaker_name)}."
