"""Tools: actions that a model may ask its NPC to do.

`tool` defines what a tool is, `toolbox` is the interface that turns use, and `registry` lists all
tools. The other modules contain the shipped tools.

Each action is checked by the game's own locks and hooks, as an action of the NPC. No text of a
model is ever run as a command.
"""
