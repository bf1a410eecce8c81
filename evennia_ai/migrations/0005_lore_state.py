"""What the lore of a conversation remembers."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0004_lorebook_revisions")]

    operations = [
        migrations.CreateModel(
            name="LoreState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("state", models.TextField(default="{}")),
                ("turn", models.PositiveIntegerField(default=0)),
                ("updated_at", models.FloatField()),
                (
                    "conversation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
        ),
    ]
