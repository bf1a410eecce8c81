"""Memos: caches whose slots are distinct even if their names are equal."""

from evennia_ai.engine.prompt.memo import Memo, Slot


def test_memo_slots_with_the_same_name_differ():
    memo = Memo()
    mine, theirs = Slot[int]("words"), Slot[int]("words")
    memo[mine] = 1
    assert memo.get(theirs) is None
    assert memo.setdefault(theirs, 2) == 2
    assert memo.get(mine) == 1


def test_repr_of_a_memo_slot_contains_its_name():
    assert repr(Slot[int]("words")) == "Slot('words')"
