"""Access models and wikis over the network without making the game wait.

`bridge` runs asyncio in its own thread, `http` is the HTTP client with limits on responses, and
`secrets` hides keys and passwords. The package knows Twisted's Deferred, but neither Django,
Evennia, settings, models nor wikis.
"""
