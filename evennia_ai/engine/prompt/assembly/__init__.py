"""The assembly: how texts become messages, in this engine's way or in SillyTavern's.

`rules` defines the options. The other modules implement SillyTavern's way;
`evennia_ai.engine.compose` calls them only if the rules ask for it.
"""
