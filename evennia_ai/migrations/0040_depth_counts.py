"""A component's depth may count speech alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0039_append_only_turns"),
    ]

    operations = [
        migrations.AddField(
            model_name="component",
            name="depth_counts",
            field=models.CharField(default="messages", max_length=16),
        ),
    ]
