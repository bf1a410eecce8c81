"""Templates: macros, logic with its allowed syntax, compiling, and rendering."""
