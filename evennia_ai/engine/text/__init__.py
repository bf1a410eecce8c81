"""Text as people read it: words and their edges, letter forms, columns of a screen."""
