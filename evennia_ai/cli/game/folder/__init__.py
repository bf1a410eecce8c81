"""Import and export of a data folder of SillyTavern (docs/build/moving-in.md explains it)."""
