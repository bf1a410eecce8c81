"""Who once guarded a knowledge base goes on guarding it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0023_plurals")]

    operations = [
        migrations.CreateModel(
            name="KnowledgeHold",
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
                ("base_key", models.CharField(max_length=64)),
                ("npc_ref", models.CharField(max_length=255)),
                ("held_since", models.FloatField()),
                ("locks", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("base_key", "npc_ref"), name="evennia_ai_hold_once"
                    )
                ],
            },
        ),
    ]
