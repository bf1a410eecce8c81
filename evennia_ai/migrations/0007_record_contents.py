"""Records: the chain covers the hash of what a record says, and every row counts the history.

The hashes of rows from before are made anew, which the triggers must let happen once. A row whose
hash was wrong keeps it, so a history that was tampered with still shows where.
"""

import json
from hashlib import sha256
from typing import Any

from django.db import migrations, models

from evennia_ai.migrations._append_only import protect_but_erasing, unprotect

BATCH = 1000
# As the projection of the time had it: what was said and done.
SAID = frozenset({"user", "assistant", "tool_call", "tool_result", "event", "reminder", "summary"})


def count_and_chain_again(apps: Any, schema_editor: Any) -> None:
    """Fill the new columns of all rows, conversation by conversation."""
    records = apps.get_model("evennia_ai", "Record").objects
    rows = records.order_by("conversation_id", "segment", "seq")
    where, chain = None, _Chain()
    done: list[Any] = []
    for row in rows.iterator(chunk_size=BATCH):
        if row.conversation_id != where:
            where, chain = row.conversation_id, _Chain()
        chain.take(row)
        done.append(row)
        if len(done) == BATCH:
            _write(schema_editor.connection, done)
            done = []
    _write(schema_editor.connection, done)


class _Chain:
    """The old chain and the new one of a conversation, side by side."""

    def __init__(self) -> None:
        self.segment = 0
        self.old = self.new = ""
        self.messages = self.users = self.replies = 0

    def take(self, row: Any) -> None:
        if row.segment != self.segment:
            self.segment, self.old = row.segment, ""
        meta = json.loads(row.meta)
        self.old = _hash(self.old, [row.kind, row.role, row.name, row.body, meta])
        is_broken = row.sha256 != self.old
        self.old = row.sha256
        said = row.kind in SAID
        self.messages += said
        self.users += said and row.role == "user"
        self.replies += said and row.role == "assistant"
        row.content_sha256 = sha256(_json([row.name, row.body, meta]).encode()).hexdigest()
        if not is_broken:
            row.sha256 = _hash(self.new, [row.kind, row.role, row.content_sha256])
        self.new = row.sha256
        row.messages, row.users, row.replies = self.messages, self.users, self.replies


def _hash(previous: str, said: list[Any]) -> str:
    return sha256(f"{previous}\n{_json(said)}".encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _write(connection: Any, rows: list[Any]) -> None:
    changes = [
        (row.content_sha256, row.sha256, row.messages, row.users, row.replies, row.pk)
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "UPDATE evennia_ai_record SET content_sha256 = %s, sha256 = %s, messages = %s,"
            " users = %s, replies = %s WHERE id = %s",
            changes,
        )


def _counted(name: str) -> migrations.AddField:
    return migrations.AddField("record", name, models.PositiveIntegerField(default=0))


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0006_card_revisions")]

    operations = [
        migrations.RunPython(unprotect, migrations.RunPython.noop),
        migrations.AddField(
            "record",
            "content_sha256",
            models.CharField(max_length=64, default=""),
            preserve_default=False,
        ),
        _counted("messages"),
        _counted("users"),
        _counted("replies"),
        migrations.RunPython(count_and_chain_again),
        migrations.AddIndex(
            "record",
            models.Index(
                fields=["conversation", "content_sha256"], name="evennia_ai_record_content"
            ),
        ),
        migrations.RunPython(protect_but_erasing, unprotect),
    ]
