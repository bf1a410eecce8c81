"""Turns are append-only: a turn may end, and its words may be erased."""

from django.db import migrations

from evennia_ai.migrations._append_only import protect_turns, unprotect_turns


class Migration(migrations.Migration):
    dependencies = [("evennia_ai", "0037_npc_leases")]

    operations = [migrations.RunPython(protect_turns, unprotect_turns)]
