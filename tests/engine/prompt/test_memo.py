"""What is kept with a value: by slots that nobody shares by accident."""

from evennia_ai.engine.prompt.memo import Memo, Slot


def test_two_slots_of_one_name_are_two():
    memo = Memo()
    mine, theirs = Slot[int]("words"), Slot[int]("words")
    memo[mine] = 1
    assert memo.get(theirs) is None
    assert memo.setdefault(theirs, 2) == 2
    assert memo.get(mine) == 1


def test_a_slot_reads_as_its_name():
    assert repr(Slot[int]("words")) == "Slot('words')"
