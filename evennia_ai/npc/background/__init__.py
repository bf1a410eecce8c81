"""Background work as the game sees it: requested here, done here or by workers, applied here."""
