"""Clients of models: shared code for HTTP, one module per protocol, and scripted models.

`llm.profiles` says which client a profile uses, and `services.endpoints` makes it.
"""
