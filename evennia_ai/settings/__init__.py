"""The settings of a game: each declared once in `model`, all read and judged in `conf`."""
