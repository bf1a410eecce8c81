"""Refused sayings: the call that a limit forbade names the words it would have answered."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0020_contexts")]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="event_record",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="evennia_ai.record",
            ),
        ),
    ]
