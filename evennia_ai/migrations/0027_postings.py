"""Pages of knowledge bases are found by postings, which are alike on every database.

What 0017 once made for SQLite and PostgreSQL is taken away where it is. The postings are written
when all migrations are done, by `evennia_ai.apps`. Back there, pages are found when they are
imported again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import migrations, models

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
    ]
