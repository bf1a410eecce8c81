"""The command `kb`: knowledge bases, their pages, drafts, hints, locks and vaults."""
