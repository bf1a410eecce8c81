"""Seals of stored turns: convert rows into portable turns, and check rows against their seals."""

from collections.abc import Callable, Iterable, Mapping

from evennia_ai import models
from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.manifest import (
    TurnManifest,
    input_record_names,
    record_names,
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
    return _portable(row, _manifest_in(row), places)


def seal_of_new_turn(
    row: models.Turn, *, text: str, manifest: TurnManifest, places: Mapping[str, str]
) -> str:
    """Return the seal of a turn that this process began.

    Args:
        row: The row, as the database has it now.
        text: The manifest as it was written. If the row differs, an erasure has changed it.
        manifest: The manifest as it was written.
        places: The places of the records that were sent, by id.

    Raises:
        ReplayError: The manifest names a record that is not there.
    """
    if row.manifest != text:
        return portable_turn(row).seal
    named = {str(row.event_record_id or ""), *input_record_names(manifest)}
    unsent = [name for name in named if name and name not in places]
    return _portable(row, manifest, {**places, **places_of(unsent)} if unsent else places).seal


def seal_problem(row: models.Turn, seals: Seals, places: Mapping[str, str] | None = None) -> str:
    """Return what differs between a turn's row and its seal, or ""."""
    try:
        manifest = _manifest_in(row)
        turn = _portable(row, manifest, places)
    except ReplayError as error:
        return str(error)
    copied = (manifest.sha256, manifest.tokens, manifest.cut, manifest.model)
    if (row.prompt_sha256, row.tokens, row.cut, row.model) != copied:
        return "its row and its manifest differ in hash, tokens, cut or model"
    if manifest.to_json() != row.manifest:
        return "its manifest is not written as a turn writes it"
    if row.npc_ref != row.conversation.npc_ref:
        return f"its row is of NPC {row.npc_ref}, its conversation of {row.conversation.npc_ref}"
    return seals.problem_of(turn)


def problem_of_turn(turn_id: int) -> str:
    """Return what is wrong with one stored turn, or "" if it matches its seal.

    The seal is looked up in the records of the turn's conversation. The chain of these records is
    not checked: `verify` does that.
    """
    row = models.Turn.objects.select_related("conversation").get(pk=turn_id)
    seals = Seals()
    holders = models.Record.objects.filter(
        conversation_id=row.conversation_id,
        kind__in=[kind.value for kind in _HOLDERS],
        meta__contains=f'"{SEAL}',
    )
    try:
        for record in records_from(holders.order_by("segment", "seq")):
            seals.add_record(record)
    except ValueError as error:
        return f"the records with the seals of turns cannot be read: {error}"
    return seal_problem(row, seals)


def _manifest_in(row: models.Turn) -> TurnManifest:
    try:
        return TurnManifest.from_json(row.manifest)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplayError("its manifest cannot be read") from error


def _portable(
    row: models.Turn, manifest: TurnManifest, places: Mapping[str, str] | None
) -> PortableTurn:
    event = None if row.event_record_id is None else str(row.event_record_id)
    try:
        if places is None:
            named = [] if event is None else [event]
            places = places_of([*named, *record_names(manifest)])
        place = _place_in(places)
        return value_of(
            PortableTurn,
            row,
            event=None if event is None else place(event),
            manifest=with_record_names(manifest, place),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ReplayError("its manifest names records in a wrong way") from error


def places_of(ids: Iterable[str]) -> Mapping[str, str]:
    """Return the places of the records with these ids, by id."""
    rows = models.Record.objects.filter(pk__in=[int(one) for one in ids])
    found = rows.values_list("pk", "segment", "seq")
    return {str(pk): f"{segment}.{seq}" for pk, segment, seq in found}


def _place_in(places: Mapping[str, str]) -> Callable[[str], str]:
    def place(record: str) -> str:
        if record not in places:
            raise ReplayError(f"it names record {record}, which its conversation does not have")
        return places[record]

    return place
