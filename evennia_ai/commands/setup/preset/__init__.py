"""The command `preset`: SillyTavern's presets, their switches, grants, places and revisions."""
