"""Language models, asked from the game without ever making it wait.

`chat` says what a model is; `openai_client`, `offline` and `scripted` are models; `resilience`
wraps one so that a slow or dead server does no harm; `roles` fits messages to what a provider
takes, before the call; `clean` makes speech of what came back, after it.

This room knows Twisted's Deferred and nothing of Django, Evennia or settings.
"""
