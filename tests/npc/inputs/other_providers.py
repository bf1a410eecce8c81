"""A provider with the same function name as one in `test_providers.py`."""


def weather(npc, event, conversation):
    return "It is dry."
