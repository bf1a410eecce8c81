"""A program that plays a scripted game in the current folder, and keeps one of its answers."""

import json
from typing import Any


def main() -> None:
    """Start the game, play, then edit everything, and print what was sent."""
    import django

    django.setup()
    import evennia

    evennia._init()
    print(json.dumps(_played()))


def _played() -> dict[str, object]:
    from twisted.internet.task import Clock

    from evennia_ai.npc import runtime
    from evennia_ai.store.history.past_turns import turns_in_order
    from tests.npc.conftest import Stage
    from tests.npc.scripted_games import edit_everything, furnish, play

    stage = Stage(Clock())
    stage.room.db.desc = "Planks, ropes and fog."
    furnish(stage)
    model = stage.talks_with(lambda request: f"Aye, {len(request.messages)}.")
    play(stage, rounds=1)
    sent = [[message.content for message in request.messages] for request in model.requests]
    hashes = [turn.manifest.sha256 for turn in turns_in_order(stage.npc.ai.ref)]
    keep(stage)
    edit_everything(stage)
    runtime.install(None)
    return {"ref": stage.npc.ai.ref, "sent": sent, "hashes": hashes}


def keep(stage: Any) -> None:
    """Keep the answer of the second turn."""
    from evennia_ai.formats.kept import case_text
    from evennia_ai.npc.senses.presence import object_of
    from evennia_ai.npc.views.kept import free_path, kept_case, write_whole
    from evennia_ai.npc.views.recomposing import PastReader
    from evennia_ai.services.settings.conf import conf
    from evennia_ai.store.history.turns import get_turn

    turn = get_turn(stage.npc.ai.ref, 2)
    case = kept_case(
        turn,
        PastReader().inputs(turn),
        about="answers a hail",
        reply="Aye.",
        name_of=lambda ref: object_of(ref).key,
    )
    write_whole(free_path(conf().kept_folder, "ned-hail"), case_text(case))


if __name__ == "__main__":
    main()
