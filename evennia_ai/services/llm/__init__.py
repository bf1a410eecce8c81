"""Language models, called without making the game wait.

`chat` defines requests, replies and the interface of a model. `clients/` has the clients for
OpenAI's and Anthropic's protocols and scripted ones, `offline/` a responder without a model.
`resilience` wraps a client, so that a slow or dead server does no harm. Before a call, `roles` and
`tools` adapt messages to the server. After it, `reasoning` is removed, and `speech` or a
`structured` answer is made of the reply. The package knows Twisted's Deferred, but neither Django,
Evennia nor settings.
"""
