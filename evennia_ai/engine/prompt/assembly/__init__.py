"""The assembly of a prompt: how texts become messages, by this engine's rules or SillyTavern's.

`rules` defines the options. The other modules do what SillyTavern does;
`evennia_ai.engine.compose` calls them only if the rules ask for it.
"""
