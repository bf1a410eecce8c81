"""Results: what a tool gave back as text that a model may read and a database may hold."""

from typing import Final

from evennia_ai.game.text import LINE_BREAK, one_line, unmarked
from evennia_ai.history.role_markup import neutral

MAX_LINES: Final = 400
NOTHING: Final = "Done."


def result_text(told: object) -> str:
    """What is told, as the NPC perceives it: lines without markup or invisible characters.

    What reads as the frame of a chat is undone: descriptions are written by anybody. Of a text over
    20,000 characters only the start is told.
    """
    lines = [one_line(line) for line in LINE_BREAK.split(unmarked(str(told)))]
    return neutral("\n".join([line for line in lines if line][:MAX_LINES])) or NOTHING
