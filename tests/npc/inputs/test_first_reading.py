"""What is read, counted and converted before the first turn of an NPC."""

from evennia_ai.engine.prompt.memo import cached_values
from evennia_ai.npc.inputs.first_reading import COUNTER, read_first
from evennia_ai.npc.senses.labels import foresee_names, label_of, older_ids, strangers_to
from evennia_ai.npc.senses.presence import scopes_of
from evennia_ai.store.authored.lorebooks import books_for
from evennia_ai.store.authored.notes import notes_for
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.windows import windows
from evennia_ai.store.memories import held_by

PERSON = "evennia.objects.objects.DefaultCharacter"


def test_messages_are_counted_and_converted_before_the_first_turn(stage, monkeypatch):
    for line in ("The tide is out.", "The bell has gone."):
        stage.says(stage.ben, line)
    forget_everything()
    fitted, counted = [], []

    async def read(mind, heard, writer, *, fit):
        await read_first(mind, heard, writer, fit=fitted.append)
        history = windows(heard.conversation.id).history
        counted.extend(cached_values(tuple(history), COUNTER.slot))

    monkeypatch.setattr("evennia_ai.npc.turn.turn.read_first", read)
    stage.npc.ai.lately.read = None
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert len(counted) == 3 and None not in counted
    assert [message.content for message in fitted[0]][:2] == [
        "The tide is out.",
        "The bell has gone.",
    ]


def test_first_turn_of_an_npc_also_reads_the_data_of_others_in_the_room(stage, no_queries):
    ada = stage.make("Ada", "evennia_ai.typeclasses.AINPC")
    stage.talks_with("Aye.")
    stage.says(stage.ben, "The tide is out.")
    forget_everything()
    stage.npc.ai.lately.read = None
    stage.says(stage.anna, "Oren?")
    with no_queries():
        assert held_by(ada.ai.ref).memories == ()
        assert notes_for(ada.ai.ref) == ()
        assert books_for(scopes_of(ada)) == ()


def test_renamed_stranger_gets_no_number_from_the_earlier_reading(stage, query_count):
    older = stage.make("Guest", PERSON, None)
    guest, carl = stage.make("Guest", PERSON), stage.make("Carl", PERSON)
    ids = older_ids(strangers_to(stage.npc))
    assert [list(before) for one, before in ids.items() if one.name == "Guest"] == [[older.id]]
    carl.key = "Guest"
    foresee_names(stage.npc, ids)
    assert label_of(stage.npc, guest) == "Guest (another)"
    assert "carl" not in stage.npc.ai.foreseen_names
    assert query_count(lambda: label_of(stage.npc, carl)) > 0
    assert strangers_to(stage.npc) == ()


def test_older_ids_makes_no_query_without_strangers(stage, no_queries):
    with no_queries():
        assert older_ids(()) == {}
