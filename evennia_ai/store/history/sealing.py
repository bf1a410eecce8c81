"""Seals of stored turns: convert rows into portable turns, and check rows against their seals."""

from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Q

from evennia_ai import models
from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.manifest import (
    TurnManifest,
    record_names,
    text_in_row,
    with_record_names,
)
from evennia_ai.engine.history.turn.seals import SEAL, PortableTurn, Seals
from evennia_ai.store.core.snapshots import value_of
from evennia_ai.store.history.record_rows import records_from

_HOLDERS = (RecordKind.RUN_END, RecordKind.ERASURE, RecordKind.SNAPSHOT)


def portable_turn(row: models.Turn, places: Mapping[str, str] | None = None) -> PortableTurn:
    """Return a turn's row as a portable turn, in which places of records replace their ids.

    Args:
        row: The row of the turn, as the database has it now.
        places: The places of all records of the conversation, by id. If None, they are read.

    Raises:
        ReplayError: the manifest cannot be read, or it names a record that does not exist.
    """
    return _portable(row, TurnManifest.from_row(row.manifest), places)


def seal_problem(row: models.Turn, seals: Seals, places: Mapping[str, str] | None = None) -> str:
    """Return how the database row of a turn differs from its integrity seal; "" if it does not."""
    try:
        manifest = TurnManifest.from_row(row.manifest)
        turn = _portable(row, manifest, places)
    except ReplayError as error:
        return str(error)
    copied = (manifest.sha256, manifest.tokens, manifest.cut, manifest.model)
    if (row.prompt_sha256, row.tokens, row.cut, row.model) != copied:
        return "its row and its manifest differ in hash, tokens, history start or model"
    if manifest.to_json() != text_in_row(row.manifest):
        return "its manifest is not written as a turn writes it"
    if row.npc_ref != row.conversation.npc_ref:
        return f"its row is of NPC {row.npc_ref}, its conversation of {row.conversation.npc_ref}"
    if problem := seals.problem_of(turn):
        return problem
    differs = row.is_erased != manifest.has_erasures
    return "its row and its manifest differ in whether words were erased" if differs else ""


def problem_of_turn(turn_id: int) -> str:
    """Return what is wrong with one stored turn, or "" if it matches its seal.

    The seal is looked up in the records of the turn's conversation. The chain of these records is
    not checked: `verify` does that.
    """
    row = models.Turn.objects.select_related("conversation").get(pk=turn_id)
    holders = models.Record.objects.filter(
        conversation_id=row.conversation_id,
        kind__in=[kind.value for kind in _HOLDERS],
        meta__contains=f'"{SEAL}',
    ).order_by("segment", "seq")
    own = Q(kind=RecordKind.RUN_END.value, meta__contains=f'"turn":{row.number}')
    later = Q(kind__in=[kind.value for kind in _HOLDERS if kind is not RecordKind.RUN_END])
    found = records_from(holders.filter(own | later))
    if any(one.kind is RecordKind.SNAPSHOT for one in found):
        found = records_from(holders)  # imported turns have other numbers in their seals
    seals = Seals()
    try:
        for record in found:
            seals.add_record(record)
    except ValueError as error:
        return f"the records with the seals of turns cannot be read: {error}"
    return seal_problem(row, seals)


def _portable(
    row: models.Turn, manifest: TurnManifest, places: Mapping[str, str] | None
) -> PortableTurn:
    event = None if row.event_record_id is None else str(row.event_record_id)
    known = {} if places is None else places
    return make_portable(row, manifest, event=event, known=known, reads_others=places is None)


def make_portable(
    turn: Any,
    manifest: TurnManifest,
    *,
    event: str | None,
    known: Mapping[str, str],
    reads_others: bool = True,
) -> PortableTurn:
    """Return a turn with the places of records instead of their ids.

    Args:
        turn: The row, or another object with the same values.
        manifest: The manifest of the turn.
        event: The id of the record that the turn answers.
        known: The places of records, by id.
        reads_others: True if places that are not known are read from the database.

    Raises:
        ReplayError: The manifest names a record that does not exist.
    """
    try:
        names = (*record_names(manifest), *([] if event is None else [event]))
        unknown = [name for name in names if name not in known]
        if unknown and reads_others:
            known = {**known, **_places_of(unknown)}
            unknown = [name for name in unknown if name not in known]
        if unknown:
            raise ReplayError(f"it names record {unknown[0]}, which its conversation does not have")
        return value_of(
            PortableTurn,
            turn,
            event=None if event is None else known[event],
            manifest=with_record_names(manifest, known.__getitem__),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplayError(
            "its manifest cannot be read, or refers to records in a wrong way"
        ) from error


def _places_of(ids: Iterable[str]) -> Mapping[str, str]:
    """Return the places of the records with these ids, by id."""
    rows = models.Record.objects.filter(pk__in=[int(one) for one in ids])
    found = rows.values_list("pk", "segment", "seq")
    return {str(pk): f"{segment}.{seq}" for pk, segment, seq in found}
