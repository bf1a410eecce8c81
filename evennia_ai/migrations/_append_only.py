"""Triggers that let nobody change or remove a record of the history, for use in migrations.

SQLite makes a table anew when a later migration alters it, and its triggers are lost: such a
migration of `Record` ends with `RunPython(protect, unprotect)`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

TABLE: Final = "evennia_ai_record"
_REFUSAL: Final = "records of the history are append-only"

_SQLITE: Final = f"""
CREATE TRIGGER {TABLE}_no_{{action}} BEFORE {{action}} ON {TABLE}
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END
"""
_POSTGRESQL_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '{_REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END
$$
"""
_POSTGRESQL: Final = f"""
CREATE TRIGGER {TABLE}_append_only BEFORE UPDATE OR DELETE ON {TABLE}
FOR EACH ROW EXECUTE FUNCTION {TABLE}_refuse()
"""

# By Django's name of the database.
_Statements = Mapping[str, Sequence[str]]
_PROTECT: Final[_Statements] = {
    "sqlite": [_SQLITE.format(action="update"), _SQLITE.format(action="delete")],
    "postgresql": [_POSTGRESQL_FUNCTION, _POSTGRESQL],
}
_UNPROTECT: Final[_Statements] = {
    "sqlite": [f"DROP TRIGGER {TABLE}_no_update", f"DROP TRIGGER {TABLE}_no_delete"],
    "postgresql": [
        f"DROP TRIGGER {TABLE}_append_only ON {TABLE}",
        f"DROP FUNCTION {TABLE}_refuse()",
    ],
}


def protect(apps: Any, schema_editor: Any) -> None:
    """Make the triggers. Another database has the model's own refusal alone."""
    _run(_PROTECT, schema_editor)


def unprotect(apps: Any, schema_editor: Any) -> None:
    """Take the triggers away."""
    _run(_UNPROTECT, schema_editor)


def _run(statements: _Statements, schema_editor: Any) -> None:
    for statement in statements.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement, params=None)
