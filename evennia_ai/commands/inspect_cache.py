"""`ai/cache <npc>`: how much of each prompt a provider may have found in its cache."""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.strict import CommandError
from evennia_ai.history.prefixes import shared_prefix
from evennia_ai.prompt.breaks import MEANINGS
from evennia_ai.store.past_turns import newest_turns, turn_before
from evennia_ai.store.turns import StoredTurn
from evennia_ai.text.columns import WIDTH, visible, wrapped

TURNS: Final = 10
_HEAD: Final = f"{'turn':>6} {'talk':>6} {'tokens':>7} {'shared':>7} {'share':>6}  what broke it"


def cache_lines(npc: Any) -> list[str]:
    """The newest turns, what each shared with the one before it, and where may be cached."""
    turns = newest_turns(npc.ai.ref, TURNS)
    if not turns:
        raise CommandError(f"{npc.key} had no turn yet: nothing was sent that could be cached.")
    lines = [f"The last {len(turns)} prompts of {npc.key}, each with the one before in its talk:"]
    lines += [_HEAD, "-" * WIDTH]
    for turn in turns:
        lines += _cached(turn)
    return [*lines, *_breakpoints(turns[-1])]


def _cached(turn: StoredTurn) -> Iterator[str]:
    shared, why = _shared(turn)
    tokens = turn.manifest.tokens
    share = "" if shared is None else f"{100 * shared // max(tokens, 1)} %"
    told = "" if shared is None else str(shared)
    lead = f"{turn.number:6} {turn.conversation.id:>6} {tokens:7} {told:>7} {share:>6}  "
    first, *more = wrapped(why, WIDTH - len(lead))
    yield f"{lead}{first}"
    yield from (" " * len(lead) + line for line in more)


def _shared(turn: StoredTurn) -> tuple[int | None, str]:
    """Tokens shared with the prompt before, and what ended them; None for a first prompt."""
    manifest = turn.manifest
    if manifest.erased:
        return None, "erased on request"
    if manifest.shared_tokens is not None:
        return manifest.shared_tokens, _why(turn)
    before = turn_before(turn)
    if before is None:
        return None, "the first prompt of its conversation"
    prefix = shared_prefix(before.manifest, manifest)
    if prefix.is_whole:
        return prefix.tokens, MEANINGS["append"]
    return prefix.tokens, f"message {prefix.messages} differs; the server was started anew between"


def _why(turn: StoredTurn) -> str:
    manifest = turn.manifest
    if manifest.broken_by is None:
        return MEANINGS["append"]
    reason = manifest.break_reason
    declared = f": {reason.replace('_', '-')}, {MEANINGS[reason]}" if reason else ""
    return f"{visible(manifest.broken_by)}{declared}"


def _breakpoints(turn: StoredTurn) -> list[str]:
    manifest = turn.manifest
    after = ", ".join(map(str, manifest.breakpoints)) or "nowhere"
    return wrapped(
        f"A provider may cache turn {turn.number} after message {after};"
        f" {manifest.stable_tokens} tokens up to the last of them stay as they are.",
        WIDTH,
    )
