"""What the templates of evennia_ai are given."""
