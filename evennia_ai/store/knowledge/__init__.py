"""Knowledge bases: their pages, the scopes that use them, and the searches of NPCs."""
