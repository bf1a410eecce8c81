"""The settings of a game: each declared once in `game`, all read and judged in `conf`."""
