"""Tools: what a model may have its NPC do, beside what it answers.

`tool` says what a tool is, `toolbox` is what a turn asks of it, `registry` which tools there are;
the others are those that are shipped. Every act is checked as the NPC, against the game's own
locks and hooks; no text of a model is ever a command.
"""
