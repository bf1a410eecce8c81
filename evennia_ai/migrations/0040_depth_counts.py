"""A component's depth may count speech alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0037_npc_leases"),
    ]

    operations = [
        migrations.AddField(
            model_name="component",
            name="depth_counts",
            field=models.CharField(default="messages", max_length=16),
        ),
    ]
