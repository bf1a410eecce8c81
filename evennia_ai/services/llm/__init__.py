"""Language models, asked from the game without ever making it wait.

`chat` says what a model is; `clients/` are models: of OpenAI's and Anthropic's protocols, scripted
and offline ones; `resilience` wraps one so that a slow or dead server does no harm. Before the call
`roles` and `tools` fit messages to what a provider takes. After it `speech` is made of what came
back without its `reasoning`, also of its start, or a `structured` answer.

It knows Twisted's Deferred, and nothing of Django, Evennia or settings.
"""
