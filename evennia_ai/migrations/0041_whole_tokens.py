"""A call says where a server read only part of its prompt."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("evennia_ai", "0040_depth_counts"),
    ]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="whole_tokens",
            field=models.PositiveIntegerField(blank=True, null=True),
        ),
    ]
