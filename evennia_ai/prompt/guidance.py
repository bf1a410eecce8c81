"""Runtime guidance: a short marked block for a conversation that was begun from the web client.

The one text about a request that stands before the history: it depends on who spoke first in the
conversation alone, so a second speaker never changes it. It is put together of the fixed sentences
below and nothing else; facts belong into the dynamic context. Pure.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

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
SCREENREADER: Final = "+screenreader"
"""Behind the word for a client: who types there has the text read out."""

Runtime = Literal["process", "workers"]
"""Where the NPC's model is asked and its tools run: in the game's own process, or beside it."""

# Evennia's words for the protocols of its web client; all other clients have no block.
_CLIENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "websocket": (
            "a page in a browser with a window of plain text, which gets each line at once"
        ),
        "ajax/comet": (
            "a page in an old browser with a window of plain text, where lines may come late"
        ),
    }
)
_READ_OUT: Final = "A screen reader reads it out: write plain sentences, no drawings and tables."
_RUNTIMES: Final[Mapping[Runtime, str]] = MappingProxyType(
    {
        "process": "You run in the game itself: what your tools make is there at once.",
        "workers": "You run beside the game: what your tools make is there once you are told so.",
    }
)
_FILES: Final = (
    "There are no files or downloads. What is too long to be said aloud belongs on a thing in the"
    " game, such as a letter or a book; tell people to open it with: read <name>"
    " (anything else: look <name>)"
)


def guidance_for(origin: str, *, runtime: Runtime = "process") -> str:
    """The block for a conversation of this origin, "" where there is none.

    `origin` is the client of the first who spoke, with the mark of a screen reader where one reads.
    """
    client = origin.removesuffix(SCREENREADER)
    if client not in _CLIENTS:
        return ""
    opened = f"This conversation was begun from the game's web client: {_CLIENTS[client]}."
    read_out = [_READ_OUT] if origin != client else []
    return "\n".join([MARK, opened, *read_out, _RUNTIMES[runtime], _FILES, END])


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
        if components.find(KEY) is not None:
            return [*made]  # the verdict of the component says that it is off
        reason = components.why_off(KEY)
        return [*made, Verdict(stage="expand", item=ORIGIN, kept=False, reason=reason)]
    if components.find(KEY) is not None or any(map(_has_mark, made)):
        reason = f"a component has {MARK} or its key already"
        return [*made, Verdict(stage="expand", item=ORIGIN, kept=False, reason=reason)]
    claim = Claim(origin=ORIGIN, id=GUIDANCE_ID, key=KEY, role="system")
    return [*made, make_piece(guidance, claim, counter=counter)]


def _has_mark(made: Piece | Verdict) -> bool:
    return isinstance(made, Piece) and made.claim.role == "system" and MARK in made.message.content
