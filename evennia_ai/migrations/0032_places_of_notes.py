"""A note may stand beside a component, so it says where."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0031_keys_of_notes")]

    operations = [
        migrations.AddField(
            model_name="note",
            name="place",
            field=models.CharField(blank=True, default="", max_length=80),
        ),
    ]
