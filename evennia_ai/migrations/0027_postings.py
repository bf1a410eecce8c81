"""Pages of knowledge bases are found by postings, which are alike on every database.

What 0017 once made for SQLite and PostgreSQL is taken away where it is, and the postings of all
pages are written. Back there, pages are found when they are imported again.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from django.db import migrations, models

from evennia_ai.store.knowledge.page_rows import page_value
from evennia_ai.store.knowledge.page_search import PageChange, index

BATCH: Final = 10_000

_TAKE_AWAY: Final[Mapping[str, Sequence[str]]] = {
    "sqlite": (
        *(
            f"DROP TRIGGER IF EXISTS evennia_ai_knowledgepagewords_{when}"
            for when in ("new", "gone", "changed")
        ),
        "DROP TABLE IF EXISTS evennia_ai_pagewords_counts",
        "DROP TABLE IF EXISTS evennia_ai_pagewords",
    ),
    "postgresql": ("DROP INDEX IF EXISTS evennia_ai_pagewords",),
}


def take_away(apps: Any, schema_editor: Any) -> None:
    """Take the old index away."""
    for statement in _TAKE_AWAY.get(schema_editor.connection.vendor, ()):
        schema_editor.execute(statement, params=None)


def keep_plain(apps: Any, schema_editor: Any) -> None:
    """Have PostgreSQL not compress postings, which are small already: to unpack them takes long."""
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE evennia_ai_knowledgeposting ALTER COLUMN packed SET STORAGE EXTERNAL"
        )


def write(apps: Any, schema_editor: Any) -> None:
    """Write the postings of all pages."""
    rows = apps.get_model("evennia_ai", "KnowledgePage").objects.order_by("base_id", "pk")
    for base_id, pages in groupby(rows.iterator(), key=lambda row: row.base_id):
        for lot in _lots(pages):
            index(base_id, lot)


def _lots(pages: Iterator[Any]) -> Iterator[list[PageChange]]:
    lot = []
    for row in pages:
        now = page_value(row, base="", revision=row.revision)
        lot.append(PageChange(page_id=row.pk, was=None, now=now))
        if len(lot) == BATCH:
            yield lot
            lot = []
    yield lot


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0026_roles_of_what_players_said")]

    operations = [
        migrations.RunPython(take_away, migrations.RunPython.noop),
        migrations.DeleteModel("KnowledgePageWords"),
        migrations.CreateModel(
            name="KnowledgePosting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("word", models.CharField(max_length=64)),
                ("field", models.CharField(max_length=16)),
                ("span", models.PositiveIntegerField()),
                ("pages", models.PositiveIntegerField()),
                ("packed", models.BinaryField()),
                (
                    "base",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=models.deletion.CASCADE,
                        to="evennia_ai.knowledgebase",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("base", "word", "field", "span"), name="evennia_ai_posting"
                    )
                ],
            },
        ),
        migrations.RunPython(keep_plain, migrations.RunPython.noop),
        migrations.RunPython(write, migrations.RunPython.noop),
    ]
