"""Triggers that let nobody change or remove a record of the history, for use in migrations.

SQLite makes a table anew when a later migration alters it, and its triggers are lost: such a
migration of `Record` begins with `unprotect` and ends with `protect_but_erasing`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TABLE: Final = "evennia_ai_record"
_REFUSAL: Final = "records of the history are append-only"
# What an erasure leaves as it is, and what of it remains.
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
        _SQLITE.format(action="update", unless=""),
        _SQLITE.format(action="delete", unless=""),
    ],
    "postgresql": [
        _POSTGRESQL_FUNCTION,
        _POSTGRESQL.format(name="append_only", actions="UPDATE OR DELETE", unless=""),
    ],
}
_PROTECT_BUT_ERASING: Final[_Statements] = {
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
            for name in ("append_only", "no_update", "no_delete", "no_late")
        ),
        f"DROP FUNCTION IF EXISTS {TABLE}_refuse()",
        f"DROP FUNCTION IF EXISTS {TABLE}_in_time()",
    ],
}


def protect(apps: Any, schema_editor: Any) -> None:
    """Make the first triggers. Another database has the model's own refusal alone."""
    _run(_PROTECT, schema_editor)


def protect_but_erasing(apps: Any, schema_editor: Any) -> None:
    """Make the triggers that let words be erased, and nothing else be changed.

    Nor can anything be written to a segment after which another one began.
    """
    _run(_PROTECT_BUT_ERASING, schema_editor)


def unprotect(apps: Any, schema_editor: Any) -> None:
    """Take the triggers away."""
    _run(_UNPROTECT, schema_editor)


def _run(statements: _Statements, schema_editor: Any) -> None:
    for statement in statements.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement, params=None)
