import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Errands: tools that take long."""

    dependencies = [("evennia_ai", "0012_memories")]

    operations = [
        migrations.CreateModel(
            name="Errand",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("npc_ref", models.CharField(max_length=255)),
                ("number", models.PositiveIntegerField()),
                ("turn", models.PositiveIntegerField()),
                ("call", models.TextField()),
                ("state", models.CharField(default="open", max_length=16)),
                ("result", models.TextField(blank=True, default="")),
                ("begun_at", models.FloatField()),
                ("ended_at", models.FloatField(blank=True, null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, to="evennia_ai.conversation"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["state"], name="evennia_ai_errand_state")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("npc_ref", "number"), name="evennia_ai_errand_number"
                    )
                ],
            },
        ),
    ]
