"""A fact for every prompt: the weather in the NPC's room."""


def weather(npc, event, conversation):
    """Return a line about the weather in the NPC's room, "" if the room has none.

    It is called in every turn, so it does not search the database. `npc` is the NPC, `event` is
    what it answers, `conversation` is where. The last two are None in a preview.
    """
    room = npc.location
    state = room.attributes.get("weather", default="") if room else ""
    return f"The weather here: {state}." if state else ""
