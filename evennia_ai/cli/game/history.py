"""`evennia-ai history` and `evennia-ai replay`: the records of a game, and its past turns.

`history` checks, exports and imports conversations. `replay` shows the exact prompt of a past turn,
and what an edit would change in it. An NPC is named as `#12` or by its name.
"""

import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Any

from evennia_ai.cli.game import machine_owner
from evennia_ai.cli.game.cast import REF, name_of, npc_called, only_one, players_called, which
from evennia_ai.cli.output import FINDING, write_json, write_lines, write_pieces
from evennia_ai.cli.terminal import shown_progress
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.history.turn.manifest import number_in, request_in_words
from evennia_ai.engine.history.turn.replay import Replay
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.formats.chats.chat import is_chat, list_import_losses, read_chat
from evennia_ai.formats.chats.chat_records import ChatSource, find_played
from evennia_ai.formats.file_kinds import describe_file
from evennia_ai.npc.views.edits import AsOfToday, ProposedEdit, read_edit_file
from evennia_ai.npc.views.forecast import Forecaster
from evennia_ai.npc.views.recomposing import (
    Comparison,
    PastReader,
    compare_turn,
    compose_again,
    see_all,
)
from evennia_ai.npc.views.view import char_name_of
from evennia_ai.store.history import conversations, past_turns, record_rows, turns, verifying
from evennia_ai.store.history.chats import import_chat, is_of_name_alone
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.history.verifying import Broken

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported.
    from evennia.objects.models import ObjectDB


_DID = "had a conversation"
_MOST_NAMED = 12
_BEGINNING = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """A checked conversation: its number of records, and the first that was changed."""

    conversation: ConversationRef
    records: int
    broken: Broken | None


def verify(npc: str | None, *, as_json: bool) -> int:
    """Print for each conversation whether its records are unchanged. Return 1 if any is not."""
    found = []
    for one in _checked(npc):
        found.append(one)
        if not as_json:
            write_lines([_checked_line(one)])
    if as_json:
        write_json({"conversations": [_checked_object(one) for one in found]}, indent=2)
    return FINDING if any(one.broken for one in found) else 0


def export(npc: str, path: Path, target: Path, *, number: int | None, force: bool) -> int:
    """Write one conversation into a file. A file is overwritten only with `force`."""
    conversation = _conversation_of(npc, number)
    pieces = (f"{line}\n".encode() for line in export_lines(conversation))
    write_pieces(path, pieces, kind="transcript", force=force)
    write_lines([escape_controls(f"{target}: conversation {_named(conversation)}")])
    return 0


def take_in(npc: str, path: Path, source: Path, *, player: str, played: str) -> int:
    """Import the conversation in a file, a transcript or a chat, whole or not at all.

    For a chat, `player` names the player and `played` the NPC's name in it.
    """
    ref = npc_called(npc)
    with _opened(path, source) as file:
        beginning = file.read(_BEGINNING)
        if is_chat(beginning):
            made, notices = _chat_taken_in(file, ref, source, player=player, played=played)
        elif player or played:
            problem = (
                f"{source}: a transcript names its speakers itself: leave out --player and --as"
            )
            raise FormatError("transcript", problem)
        else:
            if told := describe_file(beginning, wanted="chat"):
                raise FormatError("transcript", f"{source}: {told}")
            file.seek(0)
            made, notices = import_lines(file, npc_ref=ref, by=machine_owner()), ()
    told = (
        f"{source}: {record_rows.count_records(made)} records, conversation {_named(made)} of {npc}"
    )
    write_lines(map(escape_controls, [told, *(f"notice: {notice}" for notice in notices)]))
    return 0


def _chat_taken_in(
    file: BufferedReader, ref: str, source: Path, *, player: str, played: str
) -> tuple[ConversationRef, tuple[str, ...]]:
    """Import a chat as a conversation of an NPC. Return it and what of the chat is left out."""
    players = players_called(player) if player else ("",)
    if len(players) != 1:
        told = f"could be {which(players)}" if players else "is no player's character of the game"
        raise FormatError("player", f"'{player}' {told}")
    file.seek(0)
    digest = file_digest(file, "sha256").hexdigest()
    file.seek(0)
    chat = read_chat(file.readline, where=str(source))
    npc_name = name_of(ref)
    known = find_played(chat, [npc_name, char_name_of(npc_name, ref)], wanted=played)
    chat_source = ChatSource(
        file=source.name, sha256=digest, played=known, speaker_ref=players[0], by=machine_owner()
    )
    made = import_chat(chat, chat_source, npc_ref=ref)
    return made, (f"{known} is the NPC in it", *list_import_losses(chat))


@contextmanager
def _opened(path: Path, source: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise FormatError("transcript", f"{source}: cannot be read: {error.strerror}") from error


def _checked_line(one: _Checked) -> str:
    where = one.conversation
    state = "the chain holds" if one.broken is None else f"BROKEN at {one.broken}"
    return f"NPC #{where.npc_ref}: {_named(where)}: {one.records} records, {state}"


def _checked_object(one: _Checked) -> dict[str, Any]:
    where = one.conversation
    return {
        "npc": where.npc_ref,
        "conversation": where.id,
        "kind": where.kind,
        "partner": where.partner_ref,
        "place": where.place_ref,
        "records": one.records,
        "broken": asdict(one.broken) if one.broken else None,
    }


def replay_turn(npc: str, number: int, *, with_diff: bool, as_json: bool) -> int:
    """Print one past turn. Return 1 if it is not what was sent, or if the diff is not empty."""
    npc_ref = _with_turns(npc)
    turn = turns.get_turn(npc_ref, number)
    rebuilt = past_turns.replay_stored_turn(turn)
    today = compare_turn(turn, AsOfToday(), PastReader(), see_all) if with_diff else None
    if as_json:
        write_json(_replayed_object(turn, rebuilt, today), indent=2)
    else:
        write_lines(_replayed_lines(turn, rebuilt, today))
    differs = today is not None and today.outcome != "unchanged"
    return FINDING if differs or not rebuilt.is_same else 0


def replay_against(
    npc: str,
    path: Path,
    *,
    newest: int | None,
    number: int | None,
    as_json: bool,
) -> int:
    """Print what the edit in a file would change in past turns. Return 1 if it changes any."""
    npc_ref = _with_turns(npc)
    edit = read_edit_file(path)
    total, stream = _comparisons(npc_ref, edit, newest=newest, number=number)
    outcomes = {"unchanged": 0, "changed": 0, "unknown": 0}
    tokens, forecaster = 0, Forecaster(npc_ref)
    if not as_json:
        write_lines(escape_controls(f"notice: {notice}") for notice in edit.notices)
    for comparison in _with_progress(stream, total):
        outcomes[comparison.outcome] += 1
        tokens += comparison.tokens - comparison.tokens_before
        forecaster.add(comparison)
        if as_json:
            write_json(_comparison_object(comparison))
        else:
            write_lines(_comparison(comparison))
    summary = {"turns": sum(outcomes.values()), **outcomes, "tokens": tokens}
    if as_json:
        write_json({"summary": {**summary, "cost": asdict(forecaster.found)}})
    else:
        write_lines([_summary(summary), str(forecaster.found)])
    return FINDING if outcomes["changed"] or outcomes["unknown"] else 0


def _with_progress(stream: Iterable[Comparison], total: int) -> Iterator[Comparison]:
    """Yield the comparisons and show a bar on a terminal."""
    with shown_progress() as progress:
        for done, comparison in enumerate(stream, start=1):
            progress("turns", done, total)
            yield comparison


def _summary(summary: dict[str, int]) -> str:
    return (
        f"{summary['turns']} turns: {summary['changed']} changed, {summary['unchanged']} unchanged,"
        f" {summary['unknown']} not known; {summary['tokens']:+} tokens in all"
    )


def _replayed_lines(turn: StoredTurn, rebuilt: Replay, today: Comparison | None) -> Iterator[str]:
    yield f"turn {turn.number}, {turn.state}, {len(turn.manifest.messages)} messages"
    if rebuilt.is_same:
        yield "the same bytes as were sent, rebuilt from records only"
    else:
        yield from wrap_text(f"cannot be replayed: {rebuilt.problem}", WIDTH)
    for fault in rebuilt.faults:
        yield from wrap_text(f"  message #{fault.record}: the record {fault.problem}", WIDTH)
    yield f"sha256 {rebuilt.sha256}"
    if asked := request_in_words(turn.manifest):
        yield from wrap_text(escape_controls(f"asked with {asked}"), WIDTH)
    if rebuilt.tools:
        named = ", ".join(tool.name for tool in rebuilt.tools)
        yield from wrap_text(escape_controls(f"tools {named}"), WIDTH)
    yield from wrap_text(_again(turn), WIDTH)
    for index, message in enumerate(rebuilt.messages):
        name = f", {message.name}" if message.name else ""
        yield ""
        number = number_in(turn.manifest, index)
        yield clip_text(escape_controls(f"-- {number} {message.role}{name}"), WIDTH)
        yield from (escape_controls(line) for line in message.content.splitlines())
    if today is not None:
        yield ""
        yield "-- with the texts of today:"
        yield from _comparison(today)


def _comparison(comparison: Comparison) -> Iterator[str]:
    if comparison.outcome == "unknown":
        yield clip_text(
            escape_controls(f"turn {comparison.number}: not known: {comparison.problem}"), 600
        )
        return
    if comparison.outcome == "unchanged":
        yield f"turn {comparison.number}: unchanged"
        return
    yield (
        f"turn {comparison.number}: changed, {comparison.tokens_before} ->"
        f" {comparison.tokens} tokens, the first {comparison.shared_messages} messages"
        f" ({comparison.shared_tokens} tokens) stay"
    )
    for one in comparison.differences:
        of = ", ".join(one.origins)
        yield clip_text(
            escape_controls(f"  message {one.at} {one.change}, {one.role}: {of}"), WIDTH
        )
        yield from (clip_text(f"    {escape_controls(line)}", WIDTH) for line in one.lines)


def _comparison_object(comparison: Comparison) -> dict[str, Any]:
    told = asdict(replace(comparison, before=(), after=()))
    del told["before"], told["after"]
    return {"turn": told.pop("number"), **told}


def _replayed_object(turn: StoredTurn, rebuilt: Replay, today: Comparison | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "turn": turn.number,
        "state": turn.state,
        "same": rebuilt.is_same,
        "problem": rebuilt.problem,
        "faults": [asdict(fault) for fault in rebuilt.faults],
        "sha256": rebuilt.sha256,
        "composed_again": _again(turn),
        "request": dict(turn.manifest.request),
        "tools": [asdict(tool) for tool in rebuilt.tools],
        "messages": [
            {"role": message.role, "name": message.name, "content": message.content}
            for message in rebuilt.messages
        ],
    }
    if today is not None:
        made["today"] = _comparison_object(today)
    return made


def _ref_among(wanted: str, known: Collection[str], *, did: str) -> str:
    """Return the ID in `known` that `wanted` names. `did` says what the NPC did.

    A deleted NPC can be named by number.

    Raises:
        FormatError: No NPC or several are meant.
    """
    by_ref = REF.fullmatch(wanted)
    if by_ref is not None:
        if by_ref[1] not in known:
            raise FormatError("npc", f"the object {wanted} is no NPC that {did}")
        return by_ref[1]
    named = ObjectDB.objects.filter(db_key__iexact=wanted).values_list("id", flat=True)
    return only_one([str(one) for one in named if str(one) in known], wanted, did=did)


def _with_turns(wanted: str) -> str:
    return _ref_among(wanted, past_turns.npc_refs(), did="had a turn")


def _comparisons(
    npc_ref: str, edit: ProposedEdit, *, newest: int | None, number: int | None
) -> tuple[int, Iterator[Comparison]]:
    """Return the number of turns to compare, and an iterator that compares them one by one.

    It compares the turn `number`, else the `newest` turns, else all.
    """
    reader = PastReader()
    if number is not None:
        return 1, iter([compare_turn(turns.get_turn(npc_ref, number), edit, reader, see_all)])
    total = past_turns.count_of_turns(npc_ref)
    stream = past_turns.turns_in_order(npc_ref, newest=newest)
    count = total if newest is None else min(newest, total)
    return count, (compare_turn(turn, edit, reader, see_all) for turn in stream)


def _again(turn: StoredTurn) -> str:
    try:
        prompt = compose_again(turn, PastReader())
    except EvenniaAIError as error:
        return f"cannot be composed again: {error}"
    if prompt.sha256 == turn.manifest.sha256:
        return "composed again from its inputs, it has the same bytes"
    return "composed again from its inputs, it is another prompt"


def _checked(npc: str | None) -> Iterator[_Checked]:
    """Yield the conversations of one NPC, or of all, each checked when it is requested."""
    known = conversations.npc_refs()
    refs = known if npc is None else (_ref_among(npc, known, did=_DID),)
    for ref in refs:
        for one in conversations.conversations_of(ref):
            yield _Checked(
                conversation=one,
                records=record_rows.count_records(one),
                broken=verifying.verify(one),
            )


def _conversation_of(npc: str, number: int | None) -> ConversationRef:
    """Return the NPC's conversation of this number, or its only one.

    Raises:
        FormatError: There is none or several; the message lists them.
    """
    known = conversations.conversations_of(_ref_among(npc, conversations.npc_refs(), did=_DID))
    found = [one for one in known if number in (None, one.id)]
    if len(found) == 1:
        return found[0]
    problem = f"no conversation {number}" if number else "several conversations"
    which = "; ".join(_named(one) for one in known[:_MOST_NAMED])
    more = f"; and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    raise FormatError(
        "conversation", f"{npc} has {problem}; name one with --conversation: {which}{more}"
    )


def _named(conversation: ConversationRef) -> str:
    """Describe a conversation in words."""
    if is_of_name_alone(conversation):
        return f"{conversation.id}, a chat that was imported"
    if conversation.kind == "private":
        return f"{conversation.id}, in private with #{conversation.partner_ref}"
    return f"{conversation.id}, in room #{conversation.place_ref}"
