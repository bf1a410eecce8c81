"""What a turn was made of that is too big for its manifest: names and revisions, to be read back.

Components, cards, lorebooks and notes have tables of revisions; a turn keeps which of them counted
for it, in their order, and how many records there were. `evennia_ai.game.past_inputs` reads this.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from evennia_ai.compose import Inputs
from evennia_ai.game.view import KNOWLEDGE_POLICY, NPCView
from evennia_ai.knowledge.templates import TOOL as KNOWLEDGE_TOOL


def made_of(
    view: NPCView,
    inputs: Inputs,
    *,
    context: str,
    newest_record: int,
    providers: Mapping[str, str],
) -> dict[str, Any]:
    """The sources of `inputs`, made from `view` for `context`, by name and revision.

    `newest_record` is the number of the newest record of the segment; `providers` are the paths of
    the game's own functions by the keys of the blocks that they tell.
    """
    sources = view.sources
    told = {block.key for block in inputs.blocks}
    own = {key: path for key, path in providers.items() if key in told}
    return {
        "scopes": [[scope.kind, scope.ref] for scope in sources.scopes],
        "components": _components(view),
        "card": [sources.card.name, sources.card.revision] if sources.card else None,
        "books": [[book.label, book.attach, book.revision] for book in inputs.books],
        "notes": [[note.position, note.revision] for note in sources.notes],
        "context": context,
        "off": sorted(inputs.components.off),
        "newest_record": newest_record,
        "post_history_depth": sources.conf.post_history_depth,
        **({"providers": own} if own else {}),
        **_policy(view),
    }


def policy_sha256() -> str:
    """What tells the policy of knowledge from that of another version of this program."""
    return sha256(KNOWLEDGE_POLICY.content.encode()).hexdigest()


def _policy(view: NPCView) -> dict[str, str]:
    """That the NPC was told how it uses what it can look up, if it was."""
    return {"policy": policy_sha256()} if KNOWLEDGE_TOOL in view.sources.tools else {}


def _components(view: NPCView) -> dict[str, dict[str, int]]:
    """The revisions of the components that counted, by scope and key; the card's own are its."""
    found: dict[str, dict[str, int]] = {}
    for component in view.sources.registry.resolved(view.sources.scopes):
        scope = component.scope
        found.setdefault(f"{scope.kind}:{scope.ref}", {})[component.key] = component.revision
    return found
