"""`ai/verify`, `ai/export` and `ai/import`: the records of an NPC as a whole.

All of it is done while the game waits, so there are limits; `evennia-ai history` has none.
"""

from collections.abc import Sequence
from typing import Any, Final

from evennia_ai.commands.folder import bytes_of, new_file, offered, path_in
from evennia_ai.commands.shown import in_words
from evennia_ai.commands.strict import CommandError
from evennia_ai.game.mind.viewers import seer_for
from evennia_ai.game.senses.presence import NPC
from evennia_ai.settings.conf import conf
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import ConversationRef, length, records_of, verify
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.text.columns import WIDTH, wrapped

MOST_RECORDS: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024
SUFFIX: Final = ".jsonl"
_WITHOUT_LIMIT: Final = "evennia-ai history {what} does it on the command line, without a limit."


def verify_lines(npc: NPC) -> list[str]:
    """For each conversation of the NPC whether its records are what was written."""
    known = conversations_of(npc.ai.ref)
    if not known:
        raise CommandError(f"Nothing is recorded of {npc.key} yet.")
    lengths = [length(one) for one in known]
    _refuse_too_many(sum(lengths), what="verify")
    head = f"The records of {npc.key}, each hashed with the one before it:"
    lines = [head, *(_verdict(one, count) for one, count in zip(known, lengths, strict=True))]
    return [part for line in lines for part in wrapped(line, WIDTH)]


def exported(caller: Any, npc: NPC, number: int | None) -> str:
    """Write a conversation of the NPC into a new file of the card folder; what was written.

    A file has all of it or is none, so nothing of it may be hidden from `caller`.
    """
    conversation = _conversation_of(npc, number)
    count = length(conversation)
    _refuse_too_many(count, what="export")
    if seer_for(caller, npc.ai.ref).hides_some(records_of(conversation)):
        raise CommandError(
            f"Conversation {conversation.id} of {npc.key} holds what view locks of knowledge bases"
            " hide from you; nothing was written. Who may see them can export it."
        )
    content = "".join(f"{line}\n" for line in export_lines(conversation)).encode()
    name = f"{npc.key}-{conversation.id}"
    path = new_file(conf().card_folder, name, content, suffix=SUFFIX)
    return (
        f"Wrote {in_words(conversation)}, {count} records, to {path.name} in {conf().card_folder}."
        " Whoever has the file can read all of it."
    )


def files() -> list[str]:
    """The files of the card folder that may be conversations."""
    return offered(conf().card_folder, suffixes=(SUFFIX,))


def imported(npc: NPC, name: str) -> str:
    """Take over a conversation from a file of the card folder; what was taken over."""
    path = path_in(conf().card_folder, name, command="ai/import <npc>", suffixes=(SUFFIX,))
    content = bytes_of(path, most=MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise CommandError(
            f"{path.name} has more than {MOST_BYTES} bytes; nothing was taken over."
            f" {_WITHOUT_LIMIT.format(what='import')}"
        )
    made = import_lines(content.splitlines(), npc_ref=npc.ai.ref)
    return f"{npc.key} remembers {in_words(made)} now, {length(made)} records from {path.name}."


def _verdict(conversation: ConversationRef, count: int) -> str:
    broken = verify(conversation)
    found = "the chain holds" if broken is None else f"BROKEN at {broken}"
    return f"{in_words(conversation)}: {count} records, {found}"


def _conversation_of(npc: NPC, number: int | None) -> ConversationRef:
    known = conversations_of(npc.ai.ref)
    if not known:
        raise CommandError(f"Nothing is recorded of {npc.key} yet.")
    if number is None and len(known) == 1:
        return known[0]
    for one in known:
        if one.id == number:
            return one
    problem = "has several" if number is None else f"has no conversation {number}"
    raise CommandError(f"{npc.key} {problem}; {_which(npc, known)}")


def _which(npc: NPC, known: Sequence[ConversationRef]) -> str:
    shown = "; ".join(in_words(one) for one in known[:6])
    more = f"; and {len(known) - 6} more" if len(known) > 6 else ""
    return f"name one, as in ai/export {npc.key}/{known[0].id}: {shown}{more}"


def _refuse_too_many(count: int, *, what: str) -> None:
    if count > MOST_RECORDS:
        raise CommandError(
            f"These are {count} records, and the game would stand still meanwhile; the limit is"
            f" {MOST_RECORDS}. {_WITHOUT_LIMIT.format(what=what)}"
        )
