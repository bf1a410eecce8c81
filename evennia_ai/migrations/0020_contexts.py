"""Contexts: which components builders switched off in each kind of event."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0019_lorekeeper_tasks")]

    operations = [
        migrations.CreateModel(
            name="ContextRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("context", models.CharField(max_length=16)),
                ("number", models.PositiveIntegerField()),
                ("off", models.TextField(default="[]")),
                ("changed_by", models.CharField(max_length=200)),
                ("changed_at", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("context", "number"), name="evennia_ai_context_number"
                    )
                ],
            },
        ),
    ]
