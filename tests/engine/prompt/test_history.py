"""The history: views that share one list, its cut, and the slots of injected texts."""

import pytest

from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.tokens import ratio_counter
from tests.engine.prompt.builders import a_history, a_record, a_staying, a_tool_pair

LETTERS = ratio_counter(1)


def contents(history: History) -> list[str]:
    return [message.content for message in history]


def test_two_histories_that_extend_the_same_history_stay_separate() -> None:
    start = History([said("user", "start")])
    one = start.appended(said("assistant", "one"))
    other = start.appended(said("assistant", "other"), said("user", "more"))
    assert contents(start) == ["start"]
    assert contents(one) == ["start", "one"]
    assert contents(other) == ["start", "other", "more"]


def test_older_history_view_counts_only_its_own_messages() -> None:
    start = History(a_history(2))
    later = start.appended(*a_history(4))
    assert (start.user_messages, start.replies) == (1, 1)
    assert (later.user_messages, later.replies) == (3, 3)
    newest = start.newest_user()
    assert newest is not None
    assert newest.content.startswith("m1")


def test_history_counts_messages_before_its_window() -> None:
    history = History(a_history(2), earlier=7, earlier_users=4, earlier_replies=3)
    assert (history.user_messages, history.replies) == (5, 4)
    assert (len(history), history.stop) == (2, 9)


def test_history_index_before_the_window_raises() -> None:
    history = History(a_history(2), earlier=7)
    assert history[7].content.startswith("m1")
    for index in (6, 9):
        with pytest.raises(IndexError):
            history[index]


@pytest.mark.req("S3-05")
@pytest.mark.parametrize("depth", [3, 10**9])
def test_depth_never_places_a_text_above_the_kept_history(depth: int) -> None:
    assert History(a_history(6)).slot(depth, first=4) == 4
    with_a_record = [*a_history(5), a_record()]
    assert History(with_a_record).slot(depth, first=4) == 4
    assert History(with_a_record).slot_from_oldest(0, first=4) == 4


@pytest.mark.req("S3-30")
def test_depth_between_a_tool_call_and_its_results_moves_before_the_call() -> None:
    pair = a_tool_pair(1)
    history = History([*a_history(1), *pair, pair[1], *a_history(1)])
    assert [history.slot(depth, first=0) for depth in range(6)] == [5, 4, 1, 1, 1, 0]


def test_tokens_of_older_messages_are_counted_only_on_demand() -> None:
    history = History(said("user", "six..." * (number + 1)) for number in range(4))
    assert history.fitting(30, counter=LETTERS, floor=0) == (3, 28)
    assert history.tokens_from(1, counter=LETTERS) == 16 + 22 + 28
    assert history.tokens_from(0, counter=LETTERS) == 10 + 16 + 22 + 28


def test_newest_persistent_text_is_found_by_its_kind() -> None:
    history = History(
        [a_staying("dusk"), *a_history(2), a_staying("night"), a_staying(of="note:0")]
    )
    assert history.newest_staying("dynamic", first=0) == 3
    assert history.newest_staying("note:0", first=0) == 4
    assert history.newest_staying("note:1", first=0) is None


def test_persistent_text_before_the_first_index_is_not_found() -> None:
    history = History([a_staying(), *a_history(2)], earlier=5)
    assert history.newest_staying("dynamic", first=5) == 5
    assert history.newest_staying("dynamic", first=6) is None


def test_older_history_view_has_no_later_persistent_text() -> None:
    start = History(a_history(2))
    start.appended(a_staying())
    assert start.newest_staying("dynamic", first=0) is None


def test_history_counts_user_messages_from_an_index_on() -> None:
    history = History([*a_history(3), a_staying()], earlier=4, earlier_users=9)
    assert [history.users_from(first) for first in (0, 4, 5, 6, 7)] == [2, 2, 1, 1, 0]


def test_text_with_a_too_great_depth_is_placed_before_a_persistent_text_at_the_top() -> None:
    history = History([a_staying(), *a_history(2)])
    assert [history.slot(depth, first=0) for depth in (1, 2, 3, 10**9)] == [2, 1, 0, 0]


def test_persistent_texts_do_not_count_as_newest_messages() -> None:
    history = History([*a_history(2), a_staying(), *a_history(1), a_staying()])
    assert [history.newest_from(count) for count in (0, 1, 2, 3, 9)] == [5, 3, 1, 0, 0]
