"""A million NPCs made of one, in a few statements of PostgreSQL.

Evennia makes an object in some ten milliseconds; a million of them would take hours. Here the rows
of one object, of its attributes and tags, and of ours of what it lived through are copied by
`INSERT ... SELECT ... generate_series`, with ids that are known before: that of the template, and a
number after it.
"""

from dataclasses import dataclass
from typing import Any, Final

AWAKE_IN_A_HALL: Final = 6
ASLEEP_IN_A_HALL: Final = 100
SPOKE_ONE_IN: Final = 10
"""Every so manieth NPC had a turn before, in the last thirty days."""
_DAYS_SECONDS: Final = 30 * 24 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Where the copies are: the copy of number n, from 1 on, has the id `base + n`."""

    halls: int
    """The base of the halls; the first ones are those of the awake."""
    players: int
    """The base of the players' characters, one for each hall of the awake."""
    npcs: int
    awake: int

    @property
    def pairs(self) -> list[tuple[str, int]]:
        """Each NPC that is awake, by its name, with the player's character beside it."""
        return [
            (f"N{number}", self.players + _awake_hall(number))
            for number in range(1, self.awake + 1)
        ]


def _awake_hall(number: int) -> int:
    return (number - 1) // AWAKE_IN_A_HALL + 1


def made(connection: Any, *, npcs: int, awake: int) -> Crowd:
    """Copy the three that `million_world` made; the connection is of psycopg."""
    full = _awake_hall(awake)
    halls = full + -(-max(0, npcs - awake) // ASLEEP_IN_A_HALL)
    hall = _copied(connection, "The Hall", count=halls, place="NULL")
    beside = f"{hall} + n"
    player = _copied(connection, "Somebody", count=full, place=beside)
    place = (
        f"{hall} + CASE WHEN n <= {awake} THEN (n - 1) / {AWAKE_IN_A_HALL} + 1"
        f" ELSE {full} + (n - {awake} - 1) / {ASLEEP_IN_A_HALL} + 1 END"
    )
    npc = _copied(connection, "N", count=npcs, place=place)
    _lived(connection, npc, hall, npcs=npcs, awake=awake)
    # What PostgreSQL does by itself in the minutes after so many rows, beside the game's start.
    connection.execute("VACUUM (ANALYZE)")
    connection.execute("CHECKPOINT")
    return Crowd(halls=hall, players=player, npcs=npc, awake=awake)


def _copied(connection: Any, key: str, *, count: int, place: str) -> int:
    """Copies of the object of this key; their base. `place` is the id of their room, as SQL."""
    found = connection.execute("SELECT id FROM objects_objectdb WHERE db_key = %s", [key])
    template = found.fetchone()[0]
    base = _newest(connection, "objects_objectdb")
    own = {
        "id": f"{base} + n",
        "db_key": "t.db_key || n",
        "db_location_id": place,
        "db_home_id": place,
    }
    _copy(connection, "objects_objectdb", f"t.id = {template}", own, count=count)
    attributes = connection.execute(
        "SELECT attribute_id FROM objects_objectdb_db_attributes WHERE objectdb_id = %s",
        [template],
    )
    for (attribute,) in attributes.fetchall():
        first = _newest(connection, "typeclasses_attribute")
        own = {"id": f"{first} + n"}
        _copy(connection, "typeclasses_attribute", f"t.id = {attribute}", own, count=count)
        link = "INSERT INTO objects_objectdb_db_attributes (objectdb_id, attribute_id)"
        connection.execute(
            f"{link} SELECT {base} + n, {first} + n FROM generate_series(1, {count}) n"
        )
    connection.execute(
        "INSERT INTO objects_objectdb_db_tags (objectdb_id, tag_id)"
        f" SELECT {base} + n, tag_id FROM generate_series(1, {count}) n,"
        f" objects_objectdb_db_tags WHERE objectdb_id = {template}"
    )
    return base


def _lived(connection: Any, npc: int, hall: int, *, npcs: int, awake: int) -> None:
    """One turn of every so manieth NPC: a conversation, two records, the turn and its call."""
    count = npcs // SPOKE_ONE_IN
    base = {
        name: _newest(connection, f"evennia_ai_{name}")
        for name in ("conversation", "record", "turn", "modelcall")
    }
    who = f"({npc} + n * {SPOKE_ONE_IN})"
    then = f"(extract(epoch FROM now()) - (n::bigint * 7919) % {_DAYS_SECONDS})"
    told = "repeat(md5(n::text), 2)"
    numbers = f"FROM generate_series(1, {count}) n"
    written = {
        "conversation (id, npc_ref, kind, partner_ref, place_ref, origin, opened_at)": (
            f"{base['conversation']} + n, {who}::text, 'room', '', {hall}::text, '', {then}"
            f" {numbers}"
        ),
        "record (id, conversation_id, segment, seq, kind, role, name, body, meta, content_sha256,"
        " sha256, messages, users, replies, created_at)": (
            f"{base['record']} + 2 * n - 2 + s, {base['conversation']} + n, 1, s,"
            " CASE s WHEN 1 THEN 'event' ELSE 'reply' END,"
            " CASE s WHEN 1 THEN 'user' ELSE 'assistant' END, '', 'The tide is with us.', '{}',"
            f" {told}, {told}, s, 1, s - 1, {then} {numbers}, generate_series(1, 2) s"
        ),
        "turn (id, npc_ref, number, conversation_id, event_record_id, state, manifest,"
        " prompt_sha256, tokens, cut, model, outcome, created_at, ended_at)": (
            f"{base['turn']} + n, {who}::text, 1, {base['conversation']} + n,"
            f" {base['record']} + 2 * n - 1, 'done', '{{}}', {told}, 900, 0, 'late', '',"
            f" {then}, {then} {numbers}"
        ),
        "modelcall (id, npc_ref, player_ref, role, profile, model, turn, started_at, seconds,"
        " input_tokens, cached_tokens, output_tokens, is_estimated, outcome)": (
            f"{base['modelcall']} + n, {who}::text, '', 'speaker', 'default', 'late', 1, {then},"
            f" 2.0, 900, 800, 12, false, 'answered' {numbers}"
        ),
    }
    for columns, values in written.items():
        connection.execute(f"INSERT INTO evennia_ai_{columns} SELECT {values}")
    for name in base:
        _count_on(connection, f"evennia_ai_{name}")


def _copy(connection: Any, table: str, where: str, own: dict[str, str], *, count: int) -> None:
    """So many copies of a row; `own` says, as SQL, what is of the copy of number n alone."""
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_name = %s", [table]
    )
    columns = [name for (name,) in found.fetchall()]
    values = [own.get(name, f"t.{name}") for name in columns]
    connection.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(values)}"
        f" FROM generate_series(1, {count}) n, {table} t WHERE {where}"
    )
    _count_on(connection, table)


def _newest(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])


def _count_on(connection: Any, table: str) -> None:
    """Have the next row that the game makes stand behind ours."""
    connection.execute(
        f"SELECT setval(pg_get_serial_sequence('{table}', 'id'),"
        f" (SELECT coalesce(max(id), 1) FROM {table}))"
    )
