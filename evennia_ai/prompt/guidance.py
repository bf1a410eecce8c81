"""Runtime guidance: a short marked block about the client a conversation was opened from.

The one text about a request that stands before the history: it depends on the conversation alone,
so a second speaker never changes it. Only values of the tables below are ever in it; facts belong
into the dynamic context. Pure.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.pieces import Claim, Piece, make_piece
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict

KEY: Final = "runtime_guidance"
GUIDANCE_ID: Final = 4990
"""Behind everything of the game's own before the history."""
ORIGIN: Final = f"component:{KEY}"
MARK: Final = "<evennia_runtime_guidance>"
END: Final = "</evennia_runtime_guidance>"
WEB_CLIENT: Final = "webclient"

_WEB: Final = (
    f"{MARK}\n"
    "This conversation was opened from the game's web client: a page in a browser, with a window"
    " of plain text and a line to type in. It shows no files, pictures or tables of yours.\n"
    "What is too long to be said aloud belongs on a thing in the game; tell people to read it"
    " with the command: look <thing>\n"
    f"{END}"
)
# Where a conversation was opened -> its block. Other origins have none.
_BLOCKS: Final[Mapping[str, str]] = MappingProxyType({WEB_CLIENT: _WEB})


def guidance_for(origin: str) -> str:
    """The block for a conversation that was opened from `origin`, "" where there is none."""
    return _BLOCKS.get(origin, "")


def with_guidance(
    made: Sequence[Piece | Verdict],
    guidance: str,
    *,
    components: ComponentSet,
    counter: TokenCounter,
) -> list[Piece | Verdict]:
    """What was made of the components, and the block as the last text before the history.

    It is there once: where a builder has a component of its key, or a text with its mark, that one
    counts.
    """
    if not components.is_on(KEY):
        return [*made]  # the verdict of the component says that it is disabled
    if components.find(KEY) is not None or any(map(_has_mark, made)):
        reason = f"a component has {MARK} or its key already"
        return [*made, Verdict(stage="expand", item=ORIGIN, kept=False, reason=reason)]
    claim = Claim(origin=ORIGIN, id=GUIDANCE_ID, key=KEY, role="system")
    return [*made, make_piece(guidance, claim, counter=counter)]


def _has_mark(made: Piece | Verdict) -> bool:
    return isinstance(made, Piece) and made.claim.role == "system" and MARK in made.message.content
