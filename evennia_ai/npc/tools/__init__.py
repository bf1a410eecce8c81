"""Tools: acts that a model may ask of its NPC.

`tool` defines what a tool is, `toolbox` is the interface of turns, `registry` lists the tools, and
the other modules are the shipped tools. Every act is checked as the NPC, by the game's own locks
and hooks. No text of a model is ever run as a command.
"""
