"""What calls of models cost. The cost of earlier calls is not known."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="nanodollars",
            field=models.PositiveBigIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="modelcallday",
            name="nanodollars",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="modelcallday",
            name="unpriced_calls",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
