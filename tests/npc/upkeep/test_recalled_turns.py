from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import forget_everything
from tests.npc.inputs.test_reminding import learn


def test_memories_count_as_recalled_after_a_turn_and_not_after_a_preview(stage):
    stage.talks_with(lambda request: "Aye.")
    made = learn(stage, "The ferry is lost.", recalled_at=5.0)
    stage.npc.ai.preview("Where is the ferry?", stage.anna)
    assert memories.get_memory(stage.npc.ai.ref, made).recalled_at == 5.0
    stage.says(stage.anna, "Oren, where is the ferry?")
    forget_everything()
    again = memories.get_memory(stage.npc.ai.ref, made).recalled_at
    assert abs(again - hours_now()) < 1
