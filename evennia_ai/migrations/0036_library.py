"""What a game has from the library; the library's own tables are made where they are published to."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0035_work"),
    ]

    operations = [
        migrations.CreateModel(
            name="LibraryEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("name", models.CharField(max_length=200)),
                ("format", models.PositiveIntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("game", models.CharField(max_length=64)),
                ("game_name", models.CharField(max_length=200)),
                ("published_by", models.CharField(max_length=255)),
                ("published_at", models.FloatField()),
            ],
            options={
                "db_table": "evennia_ai_library_entry",
                "verbose_name_plural": "library entries",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="LibraryFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("path", models.CharField(max_length=600)),
                ("sha256", models.CharField(max_length=64)),
                ("content", models.BinaryField()),
            ],
            options={
                "db_table": "evennia_ai_library_file",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="LibraryCopy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("name", models.CharField(max_length=200)),
                ("sha256", models.CharField(max_length=64)),
                ("said", models.CharField(blank=True, default="", max_length=200)),
                ("game_name", models.CharField(max_length=200)),
                ("is_gone", models.BooleanField(default=False)),
                ("taken_by", models.CharField(max_length=255)),
                ("taken_at", models.FloatField()),
            ],
            options={
                "verbose_name_plural": "library copies",
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name"), name="evennia_ai_copy")
                ],
            },
        ),
    ]
