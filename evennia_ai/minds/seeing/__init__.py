"""Who may see what of prompts, records and memories; every screen of builders asks here."""
