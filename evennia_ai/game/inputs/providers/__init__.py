"""Providers: what tells an NPC the facts of the moment, each a block of its own in the prompt.

`registry.py` asks them; every other file holds one that is shipped. They tell facts: how an NPC
is to behave stands in components, which do not change from request to request.
"""
