"""Language models, asked from the game without ever making it wait.

`chat` says what a model is; the clients, `offline` and `scripted` are models; `resilience` wraps
one so that a slow or dead server does no harm. Before the call `roles` fits messages to what a
provider takes, tools as text among it (`schema_tools`). After it `clean` makes speech of what came
back, `sentences` also of its start; `structured` asks for an answer of a form.

This room knows Twisted's Deferred and nothing of Django, Evennia or settings.
"""
