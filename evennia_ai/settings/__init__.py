"""The settings of a game: declared once in `model`, read in `conf`, `together` judges them all."""
