"""The text that every match of a pattern must contain, to know at once where there is none.

It is looked for in the lower-cased text. A character may be part of it only if all that the
pattern takes in its place have one and the same small letter: an `s` that also means the long s
does not, and ends the run.
"""

from typing import Final

from evennia_ai.lorebook.patterns.charsets import SURROGATES, CharSet
from evennia_ai.lorebook.patterns.tree import (
    Chain,
    Chars,
    Edge,
    Group,
    Look,
    Node,
    Repeat,
    WordEdge,
)

_MOST_ALIKE: Final = 4
# Its small letter depends on its neighbours.
_SIGMA: Final = "Σ"


def required(tree: Node) -> str:
    """The longest such text, in lower case; "" where there is none."""
    return max(_runs(tree), key=len, default="")


def _runs(tree: Node) -> list[str]:
    """The texts that must all be there."""
    runs = [""]
    for node in _flat(tree):
        match node:
            case Chars(chars=chars):
                letter = _letter(chars)
                runs[-1:] = [runs[-1] + letter] if letter else [runs[-1], ""]
            case Repeat(body=body, least=least) if least:
                runs += [*_runs(body), ""]
            case Look(body=body, negative=False):
                runs += [*_runs(body), ""]
            case Edge() | WordEdge():
                pass
            case _:
                runs.append("")
    return runs


def _flat(tree: Node) -> list[Node]:
    """The nodes that follow one another, groups opened."""
    match tree:
        case Chain(parts=parts):
            return [node for part in parts for node in _flat(part)]
        case Group(body=body):
            return _flat(body)
        case _:
            return [tree]


def _letter(chars: CharSet) -> str:
    """The small letter of all members, "" where they have several."""
    if chars.negated or chars.properties:
        return ""
    if sum(last - first + 1 for first, last in chars.ranges) > _MOST_ALIKE:
        return ""
    members = [chr(code) for first, last in chars.ranges for code in range(first, last + 1)]
    letters = {member.lower() for member in members}
    if len(letters) != 1 or _SIGMA in members:
        return ""
    return (
        "" if any(SURROGATES[0] <= ord(one) <= SURROGATES[1] for one in members) else letters.pop()
    )
