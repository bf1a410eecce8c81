"""The assembly: how texts become messages, in this engine's way or in SillyTavern's.

`rules` says what can differ. The other modules do what SillyTavern does;
`evennia_ai.engine.compose` enters them only if the rules ask for it.
"""
