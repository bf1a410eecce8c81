"""A tool: the NPC rings a bell that is in the room."""

from pydantic import Field

from evennia_ai import Tool, ToolArguments, Use, things


class RingBell(Tool):
    """Ring a bell. A bell is a thing with the tag `bell`."""

    # The model reads the name, the description and the arguments in every prompt.
    name = "ring_bell"
    description = "Ring the bell that is here."
    dangerous = True  # it changes the world, so a turn may use only one

    class Arguments(ToolArguments):
        """The arguments of the tool. The model gets an error for any other argument."""

        strokes: int = Field(ge=1, le=12, description="how many strokes")

    def refusal(self, use: Use, arguments: Arguments) -> str:
        """Return why the NPC cannot ring the bell now, or "" if it can."""
        here = things(use.npc)  # only things that the NPC may see
        return "" if any(one.tags.has("bell") for one in here) else "There is no bell here."

    def run(self, use: Use, arguments: Arguments) -> str:
        """Ring the bell, and return the text that the model reads as the result."""
        use.npc.location.msg_contents(f"The bell rings: {arguments.strokes}.", from_obj=use.npc)
        return f"You rang the bell: {arguments.strokes}."
