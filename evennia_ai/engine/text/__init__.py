"""Text as people read it: words and their boundaries, letter forms, columns on a screen."""
