"""A program that plays a scripted game in the current folder."""

import json


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
    edit_everything(stage)
    runtime.install(None)
    return {"ref": stage.npc.ai.ref, "sent": sent, "hashes": hashes}


if __name__ == "__main__":
    main()
