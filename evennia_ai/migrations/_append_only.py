"""Database triggers that refuse changes and removals of history records and finished turns.

SQLite rebuilds a table that a migration alters, and drops its triggers. So a migration of `Record`
begins with `unprotect` and ends with `protect`; a migration of `Turn` begins
with `unprotect_turns` and ends with `protect_turns`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TABLE: Final = "evennia_ai_record"
_REFUSAL: Final = "records of the history are append-only"
# The columns that an erasure may not change.
_KEPT: Final = (
    "id",
    "conversation_id",
    "segment",
    "seq",
    "kind",
    "role",
    "content_sha256",
    "sha256",
    "messages",
    "users",
    "replies",
    "created_at",
)
_SAME_PLACE: Final = " AND ".join(f"NEW.{column} = OLD.{column}" for column in _KEPT)
_ERASES: Final = (
    f"NEW.name = '' AND NEW.body = '' AND NEW.meta = '{{\"erased\":true}}' AND {_SAME_PLACE}"
)

_SQLITE: Final = f"""
CREATE TRIGGER {TABLE}_no_{{action}} BEFORE {{action}} ON {TABLE} {{unless}}
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END
"""
# INSERT OR REPLACE removes rows without asking the trigger for removals.
_SQLITE_NO_REPLACING: Final = f"""
CREATE TRIGGER {TABLE}_no_replace BEFORE INSERT ON {TABLE}
WHEN EXISTS (
    SELECT 1 FROM {TABLE} WHERE id = NEW.id
    OR (conversation_id = NEW.conversation_id AND segment = NEW.segment AND seq = NEW.seq)
)
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END
"""  # noqa: S608 - all its words are ours
# A process that did not hear of a new segment would write where nobody reads.
_OVER: Final = "the segment of this record is over"
_IS_OVER: Final = (
    f"EXISTS (SELECT 1 FROM {TABLE} WHERE conversation_id = NEW.conversation_id"  # noqa: S608
    " AND segment > NEW.segment)"
)
_SQLITE_NO_LATECOMERS: Final = f"""
CREATE TRIGGER {TABLE}_no_late BEFORE INSERT ON {TABLE} WHEN {_IS_OVER}
BEGIN SELECT RAISE(ABORT, '{_OVER}'); END
"""
_POSTGRESQL_LATE: Final = f"""
CREATE OR REPLACE FUNCTION {TABLE}_in_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {_IS_OVER} THEN
        RAISE EXCEPTION '{_OVER}' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END
$$
"""
_POSTGRESQL_NO_LATECOMERS: Final = f"""
CREATE TRIGGER {TABLE}_no_late BEFORE INSERT ON {TABLE}
FOR EACH ROW EXECUTE FUNCTION {TABLE}_in_time()
"""
_POSTGRESQL_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END
$$
"""
_POSTGRESQL: Final = f"""
CREATE TRIGGER {TABLE}_{{name}} BEFORE {{actions}} ON {TABLE}
FOR EACH ROW {{unless}} EXECUTE FUNCTION {TABLE}_refuse()
"""
_UNLESS_ERASED: Final = f"WHEN (NOT ({_ERASES}))"

# By Django's name of the database.
_Statements = Mapping[str, Sequence[str]]
_PROTECT: Final[_Statements] = {
    "sqlite": [
        _SQLITE.format(action="update", unless=_UNLESS_ERASED),
        _SQLITE.format(action="delete", unless=""),
        _SQLITE_NO_REPLACING,
        _SQLITE_NO_LATECOMERS,
    ],
    "postgresql": [
        _POSTGRESQL_FUNCTION,
        _POSTGRESQL.format(name="no_update", actions="UPDATE", unless=_UNLESS_ERASED),
        _POSTGRESQL.format(name="no_delete", actions="DELETE", unless=""),
        _POSTGRESQL_LATE,
        _POSTGRESQL_NO_LATECOMERS,
    ],
}
_UNPROTECT: Final[_Statements] = {
    "sqlite": [
        f"DROP TRIGGER IF EXISTS {TABLE}_no_{action}"
        for action in ("update", "delete", "replace", "late")
    ],
    "postgresql": [
        *(
            f"DROP TRIGGER IF EXISTS {TABLE}_{name} ON {TABLE}"
            for name in ("no_update", "no_delete", "no_late")
        ),
        f"DROP FUNCTION IF EXISTS {TABLE}_refuse()",
        f"DROP FUNCTION IF EXISTS {TABLE}_in_time()",
    ],
}


TURNS: Final = "evennia_ai_turn"
_TURN_REFUSAL: Final = "turns are append-only"
_PROMPT: Final = (
    "id",
    "npc_ref",
    "number",
    "conversation_id",
    "event_record_id",
    "prompt_sha256",
    "tokens",
    "cut",
    "model",
    "created_at",
)
"""What no change of a turn touches."""


def _same(columns: Sequence[str], is_equal: str) -> str:
    return " AND ".join(f"NEW.{one} {is_equal} OLD.{one}" for one in columns)


def _turn_triggers(is_equal: str) -> tuple[str, str]:
    """Return the changes of a turn that are allowed: to end it, and to erase its words.

    `is_equal` is the operator of the database that counts two nulls as equal.
    """
    ends = f"OLD.state = 'open' AND {_same([*_PROMPT, 'manifest', 'is_erased'], is_equal)}"
    erases = f"NEW.is_erased AND {_same([*_PROMPT, 'state', 'ended_at'], is_equal)}"
    return ends, erases


def _unless_allowed(is_equal: str) -> str:
    allowed = " OR ".join(f"({one})" for one in _turn_triggers(is_equal))
    return f"WHEN (NOT ({allowed}))"


_SQLITE_TURN: Final = f"""
CREATE TRIGGER {TURNS}_no_{{action}} BEFORE {{action}} ON {TURNS} {{unless}}
BEGIN SELECT RAISE(ABORT, '{_TURN_REFUSAL}'); END
"""
_SQLITE_NO_REPLACING_TURNS: Final = f"""
CREATE TRIGGER {TURNS}_no_replace BEFORE INSERT ON {TURNS}
WHEN EXISTS (
    SELECT 1 FROM {TURNS} WHERE id = NEW.id OR (npc_ref = NEW.npc_ref AND number = NEW.number)
)
BEGIN SELECT RAISE(ABORT, '{_TURN_REFUSAL}'); END
"""  # noqa: S608 - all its words are ours
_POSTGRESQL_TURN_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {TURNS}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{_TURN_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END
$$
"""
_POSTGRESQL_TURN: Final = f"""
CREATE TRIGGER {TURNS}_no_{{action}} BEFORE {{action}} ON {TURNS}
FOR EACH ROW {{unless}} EXECUTE FUNCTION {TURNS}_refuse()
"""
_PROTECT_TURNS: Final[_Statements] = {
    "sqlite": [
        _SQLITE_TURN.format(action="update", unless=_unless_allowed("IS")),
        _SQLITE_TURN.format(action="delete", unless=""),
        _SQLITE_NO_REPLACING_TURNS,
    ],
    "postgresql": [
        _POSTGRESQL_TURN_FUNCTION,
        _POSTGRESQL_TURN.format(action="update", unless=_unless_allowed("IS NOT DISTINCT FROM")),
        _POSTGRESQL_TURN.format(action="delete", unless=""),
    ],
}
_UNPROTECT_TURNS: Final[_Statements] = {
    "sqlite": [
        f"DROP TRIGGER IF EXISTS {TURNS}_no_{action}" for action in ("update", "delete", "replace")
    ],
    "postgresql": [
        f"DROP TRIGGER IF EXISTS {TURNS}_no_update ON {TURNS}",
        f"DROP TRIGGER IF EXISTS {TURNS}_no_delete ON {TURNS}",
        f"DROP FUNCTION IF EXISTS {TURNS}_refuse()",
    ],
}


def protect(apps: Any, schema_editor: Any) -> None:
    """Make the triggers that let words be erased, and nothing else be changed.

    Nor can anything be written to a segment after which another one began.
    """
    _run(_PROTECT, schema_editor)


def unprotect(apps: Any, schema_editor: Any) -> None:
    """Take the triggers away."""
    _run(_UNPROTECT, schema_editor)


def protect_turns(apps: Any, schema_editor: Any) -> None:
    """Make the triggers of turns: a turn may end, and its words be erased, and nothing else."""
    _run(_PROTECT_TURNS, schema_editor)


def unprotect_turns(apps: Any, schema_editor: Any) -> None:
    """Remove the triggers of turns."""
    _run(_UNPROTECT_TURNS, schema_editor)


def _run(statements: _Statements, schema_editor: Any) -> None:
    for statement in statements.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement, params=None)
