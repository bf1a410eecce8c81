"""Let an NPC use a tool as in a turn: the call is found, then run."""

import json
from typing import Any

from evennia_ai.services.settings.conf import conf


def an_event(stage: Any, *, speaker: Any = None, private: bool = False, hops: int = 0) -> Any:
    from evennia_ai.npc.senses.events import Event

    speaker = speaker or stage.anna
    return Event(
        kind="whisper" if private else "say",
        speaker_ref=str(speaker.id),
        speaker_name=speaker.key,
        text="Well?",
        room_ref=str(stage.room.id),
        private=private,
        hops=hops,
    )


def a_toolbox(stage: Any, *names: str, event: Any = None) -> Any:
    from evennia_ai.npc.tools.registry import toolbox_of

    return toolbox_of(stage.npc, names, event=event or an_event(stage))


def a_use(stage: Any, event: Any = None) -> Any:
    from evennia_ai.npc.recording import heard
    from evennia_ai.npc.runtime import runtime
    from evennia_ai.npc.tools.tool import Use

    event = event or an_event(stage)
    here = [who for who in stage.room.contents if str(who.id) == event.speaker_ref]
    return Use(
        npc=stage.npc,
        mind=stage.npc.ai,
        view=stage.npc.ai.view(),
        settings=stage.npc.ai.settings,
        conf=conf(),
        backends=runtime().backends,
        calls=runtime().calls,
        event=event,
        speaker=here[0] if here else None,
        conversation=heard.open_conversation(stage.npc.ai.ref, heard.key_of(event)),
        hops=event.hops + 1,
        turn=1,
    )


def a_call(name: str, arguments: Any = None, **named: Any) -> Any:
    """Return a call of a tool. `arguments` is the raw text of its arguments, if that matters."""
    from evennia_ai.engine.prompt.messages import ToolCall

    text = arguments if isinstance(arguments, str) else json.dumps(arguments or named)
    return ToolCall(id="call-1", name=name, arguments=text)


def does(stage: Any, name: str, *, box: Any = None, event: Any = None, **arguments: Any) -> Any:
    """Return the result of a tool called with these valid arguments."""
    from evennia_ai.npc.tools.toolbox import Found

    event = event or an_event(stage)
    box = box or a_toolbox(stage, name, event=event)
    found = box.find(a_call(name, **arguments))
    assert isinstance(found, Found), found
    return box.run(found, a_use(stage, event))


def a_thing(stage: Any, key: str = "lantern", *, place: Any = None, locks: str = "") -> Any:
    made = stage.make(key, "evennia.objects.objects.DefaultObject", place=place or stage.room)
    if locks:
        made.locks.add(locks)
    return made
