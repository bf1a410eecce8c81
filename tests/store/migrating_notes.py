"""A process of its own whose database goes from notes at positions to notes with keys, and back.

Prints one line of JSON: what was called how after each step. Tables cannot be made anew inside the
transaction that a test runs in.
"""

import json
import sys
from typing import Any

from tests.store.two_processes import start

BEFORE, AFTER = "0030_book_texts", "0032_places_of_notes"


def main(database: str) -> None:
    start(database)
    then = _migrated(BEFORE)
    for position in (0, 2):
        row = {"npc_ref": "12", "position": position, "changed_by": "Mira"}
        then.get_model("evennia_ai", "Note").objects.create(**row, content=f"at {position}")
        said = json.dumps({"content": f"at {position}", "depth": 4, "role": "system", "every": 1})
        then.get_model("evennia_ai", "NoteRevision").objects.create(
            **row, number=1, action="created", changed_at=1.0, value=said
        )
    _migrated(AFTER)
    from evennia_ai.store.authored import notes

    now = [(note.key, note.content, note.revision) for note in notes.notes_for("12")]
    reverted = notes.note_of_turn("12", 2, 1).content
    back = _migrated(BEFORE).get_model("evennia_ai", "NoteRevision").objects
    positions = sorted(back.values_list("position", "changed_by"))
    print(json.dumps({"now": now, "then": reverted, "back": positions}))


def _migrated(name: str) -> Any:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    MigrationExecutor(connection).migrate([("evennia_ai", name)])
    return MigrationExecutor(connection).loader.project_state([("evennia_ai", name)]).apps


if __name__ == "__main__":
    main(sys.argv[1])
