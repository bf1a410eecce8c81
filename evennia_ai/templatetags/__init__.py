"""Tags and filters for the templates of evennia_ai."""
