"""What workers took of a minute is counted by NPC too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0036_library"),
    ]

    operations = [
        migrations.AddField(
            model_name="tokenlease",
            name="npc_ref",
            field=models.CharField(blank=True, default="", max_length=255),
        ),
        migrations.AlterField(
            model_name="tokenlease",
            name="minute",
            field=models.PositiveBigIntegerField(),
        ),
        migrations.AddConstraint(
            model_name="tokenlease",
            constraint=models.UniqueConstraint(
                fields=("minute", "npc_ref"), name="evennia_ai_lease"
            ),
        ),
    ]
