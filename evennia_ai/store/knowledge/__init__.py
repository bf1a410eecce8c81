"""Knowledge bases: their pages, where they count, what NPCs looked up in them."""
