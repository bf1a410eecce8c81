"""The command `preset`: SillyTavern's presets, their switches, rights, places and revisions."""
