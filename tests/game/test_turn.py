"""The turn, from what a player types to what the room reads."""


def test_an_npc_that_is_called_by_name_answers_aloud(stage):
    stage.talks_with("Aye, the ferry runs at dusk.")
    stage.says(stage.anna, "Oren, when does the ferry run?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye, the ferry runs at dusk."'
    assert stage.screen_of(stage.ben)[-1] == 'Oren says, "Aye, the ferry runs at dusk."'
    assert stage.records() == [
        ("user", "Anna", "Oren, when does the ferry run?"),
        ("assistant", "", "Aye, the ferry runs at dusk."),
        ("run_end", "", "answered"),
    ]
