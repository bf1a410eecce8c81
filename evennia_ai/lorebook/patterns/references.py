"""Which groups are referred back to, and whether Python remembers them as JavaScript does.

JavaScript forgets what groups found at each new round of a repetition around them, and reads
backwards behind a place; Python does neither. What would come out differently is refused.
"""

from collections.abc import Iterator

from evennia_ai.lorebook.patterns.source import UnsupportedPatternError
from evennia_ai.lorebook.patterns.tree import Again, Choice, Group, Look, Node, Repeat, below

# A node under all that is around it, the outermost first.
Place = tuple[Node, ...]


def remembered(tree: Node) -> frozenset[int]:
    """Numbers of the groups that an engine must remember.

    A reference to any other group, or to one that is not closed yet, is to nothing, and matches
    nothing. Raises UnsupportedPatternError.
    """
    groups: dict[int, Place] = {}
    wanted: set[int] = set()
    for node, place in _closed(tree, ()):
        if isinstance(node, Group):
            groups[node.number] = place
        elif isinstance(node, Again) and _is_readable(groups.get(node.number), place):
            wanted.add(node.number)
    return frozenset(wanted)


def _closed(node: Node, around: Place) -> Iterator[tuple[Node, Place]]:
    """All nodes in the order in which they end."""
    for under in below(node):
        yield from _closed(under, (*around, node))
    yield node, around


def _is_readable(group: Place | None, place: Place) -> bool:
    """Whether a group may have found something; one inside a negative look has not, outside."""
    if group is None:
        return False
    around = {id(node) for node in place}
    left = [node for node in group if isinstance(node, Look) and id(node) not in around]
    if any(node.negative for node in left):
        return False
    if any(isinstance(node, Look) and node.behind for node in (*group, *place)):
        raise UnsupportedPatternError("a back-reference and a look behind")
    if any(_forgets(node, group[at + 1 :]) for at, node in enumerate(group)):
        raise UnsupportedPatternError("a back-reference to what a repetition may forget")
    return True


def _forgets(node: Node, inside: Place) -> bool:
    """Whether a later round of this repetition may pass by a group that is so deep inside."""
    repeats = isinstance(node, Repeat) and node.most != 1
    return repeats and any(
        isinstance(one, Choice) or (isinstance(one, Repeat) and not one.least) for one in inside
    )
