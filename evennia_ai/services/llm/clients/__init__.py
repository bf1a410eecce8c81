"""Model clients: shared code for HTTP, one module per protocol, and a scripted model for tests.

A profile names its client (`llm.profiles`), and `services.endpoints` makes the client.
"""
