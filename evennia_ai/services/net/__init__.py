"""The network, asked from the game without ever making it wait: for models and for wikis.

`bridge` runs asyncio in a thread of its own; `http` is the one HTTP client, and reads what servers
send within limits; `secrets` keeps keys and passwords out of sight.

It knows Twisted's Deferred, and nothing of Django, Evennia, settings, models or wikis.
"""
