"""A provider of another game's, with a name that is taken."""


def weather(npc, event, conversation):
    return "It is dry."
