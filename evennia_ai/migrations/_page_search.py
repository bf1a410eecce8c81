"""What a database searches the words of pages with, for use in migrations.

The words are made by us (`knowledge/relevance.py`), a blank between two: so both databases are
told to take them as they are, without a language. SQLite makes a table anew when a later migration
alters it, and its triggers are lost: such a migration of `KnowledgePageWords` begins with
`take_away` and ends with `make`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import DatabaseError

TABLE: Final = "evennia_ai_knowledgepagewords"
INDEX: Final = "evennia_ai_pagewords"
COUNTS: Final = "evennia_ai_pagewords_counts"

_ADD: Final = f"INSERT INTO {INDEX}(rowid, title, body) VALUES (NEW.page_id, NEW.title, NEW.body);"  # noqa: S608 - all its words are ours
_DROP: Final = (
    f"INSERT INTO {INDEX}({INDEX}, rowid, title, body)"  # noqa: S608 - the same
    " VALUES ('delete', OLD.page_id, OLD.title, OLD.body);"
)
# To the tokenizer `ascii` all other letters are letters, of whatever Unicode they are.
_OPTIONS: Final = f"content='{TABLE}', content_rowid='page_id', tokenize='ascii'"
_SQLITE: Final = (
    f"CREATE VIRTUAL TABLE {INDEX} USING fts5(title, body, {_OPTIONS})",
    f"CREATE VIRTUAL TABLE {COUNTS} USING fts5vocab('{INDEX}', 'row')",
    f"CREATE TRIGGER {TABLE}_new AFTER INSERT ON {TABLE} BEGIN {_ADD} END",
    f"CREATE TRIGGER {TABLE}_gone AFTER DELETE ON {TABLE} BEGIN {_DROP} END",
    f"CREATE TRIGGER {TABLE}_changed AFTER UPDATE ON {TABLE} BEGIN {_DROP} {_ADD} END",
    f"INSERT INTO {INDEX}({INDEX}) VALUES ('rebuild')",  # noqa: S608 - the same
)
_POSTGRESQL: Final = (
    *(
        f"ALTER TABLE {TABLE} ADD COLUMN {column}_lexemes tsvector GENERATED ALWAYS AS"
        f" (array_to_tsvector(array_remove(string_to_array({column}, ' '), ''))) STORED"
        for column in ("title", "body")
    ),
    f"CREATE INDEX {INDEX} ON {TABLE} USING gin (body_lexemes)",
)
_MAKE: Final[Mapping[str, Sequence[str]]] = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}
_TAKE_AWAY: Final[Mapping[str, Sequence[str]]] = {
    "sqlite": (
        *(f"DROP TRIGGER IF EXISTS {TABLE}_{when}" for when in ("new", "gone", "changed")),
        f"DROP TABLE IF EXISTS {COUNTS}",
        f"DROP TABLE IF EXISTS {INDEX}",
    ),
    "postgresql": (
        f"DROP INDEX IF EXISTS {INDEX}",
        *(
            f"ALTER TABLE {TABLE} DROP COLUMN IF EXISTS {column}_lexemes"
            for column in ("title", "body")
        ),
    ),
}


def make(apps: Any, schema_editor: Any) -> None:
    """Make the index of words. Another database has none, and its pages cannot be searched."""
    try:
        _run(_MAKE, schema_editor)
    except DatabaseError as error:
        if "fts5" not in str(error):
            raise
        raise DatabaseError(
            "the SQLite of this Python was built without FTS5, which the search in knowledge bases "
            "needs: use another Python (those of python.org and Debian have it), or PostgreSQL"
        ) from error


def take_away(apps: Any, schema_editor: Any) -> None:
    """Take the index of words away; the words stay."""
    _run(_TAKE_AWAY, schema_editor)


def _run(statements: Mapping[str, Sequence[str]], schema_editor: Any) -> None:
    for statement in statements.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement, params=None)
