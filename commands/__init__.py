"""This game's command sets."""
