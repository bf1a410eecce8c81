"""Tests of verdicts on entries without a found key, one by one and grouped by reason."""

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.book import pack_uids, unpack_uids
from evennia_ai.engine.lorebook.rules import ActivationRules
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, awake, reasons

UIDS = st.lists(
    st.one_of(
        st.integers(0, 40).map(str),
        st.sampled_from(["gate", "", "007", "1;2", '["', "٣", "9" * 19]),
    )
)


@given(UIDS)
def test_unpacking_entry_uids_returns_what_was_packed(uids):
    numbers = [uid for uid in uids if uid in map(str, range(41))]
    others = [uid for uid in uids if uid not in numbers]
    assert list(unpack_uids(pack_uids(uids))) == numbers + others


def test_ten_thousand_entry_uids_are_packed_into_a_range():
    assert pack_uids(map(str, range(10_000))) == "0-9999"
    assert pack_uids(["0", "1", "3", "gate", "4"]) == '0-1,3-4;["gate"]'


def test_unmatched_entries_are_grouped_by_reason():
    book = a_book(
        an_entry(),
        an_entry(keys=["gate"]),
        an_entry(enabled=False),
        an_entry(keys=["bell"]),
        an_entry(keys=[]),
    )
    result = awake(book)
    assert [(silence.book, silence.reason, silence.uids) for silence in result.silent] == [
        ("book", "no key in the newest 4 messages", "0-1,3"),
        ("book", "disabled", "2"),
        ("book", "has no keys", "4"),
    ]
    assert [verdict.item for verdict in result.touched] == ["lore:book#0"]


def test_reason_of_unmatched_entries_names_the_depth_of_the_widened_scan():
    book = a_book(an_entry("Found."), an_entry("Silent.", keys=["gate"]))
    scan = a_scan("user: coin", "user: -", "user: -")
    rules = ActivationRules(scan_depth=1, min_activations=1)
    assert reasons(awake(book, scan=scan, rules=rules)) == {
        "book#0": "+ key 'coin' in message 1 at 0-4; pass 3 (widened)",
        "book#1": "- no key in the newest 3 messages",
    }
    assert reasons(awake(book, scan=scan, rules=ActivationRules(scan_depth=1)))["book#1"] == (
        "- no key in the newest message"
    )


def test_reason_of_unmatched_entries_depends_on_macro_values_in_keys():
    book = a_book(an_entry(keys=["{{user}}"]))
    said = [reasons(awake(book, values={"user": name}))["book#0"] for name in (" ", "Anna", " ")]
    assert said == ["- has no keys", "- no key in the newest 4 messages", "- has no keys"]


KEYED = st.tuples(
    st.lists(st.sampled_from(["coin", "gate", "bell", "", "/c.in/"]), max_size=2),
    st.sampled_from(["", "@@dont_activate\n", "@@scan_depth 1\n", "@@activate_only_after 1\n"]),
    st.booleans(),
    st.booleans(),
)


@given(
    st.lists(KEYED, max_size=5),
    st.lists(KEYED, max_size=3),
    st.lists(st.sampled_from(["user: coin", "assistant: gate", "user: -"]), max_size=4),
    st.integers(0, 3),
)
def test_groups_of_unmatched_entries_agree_with_the_single_verdicts(first, second, lines, minimum):
    books = [
        a_book(
            *(
                an_entry(f"{head}bell", keys=keys, constant=constant, enabled=enabled)
                for keys, head, constant, enabled in listed
            ),
            label=label,
        )
        for label, listed in (("one", first), ("two", second))
    ]
    rules = ActivationRules(scan_depth=1, min_activations=minimum)
    result = awake(*books, scan=a_scan(*lines), rules=rules)
    verdicts = {verdict.item: verdict for verdict in result.verdicts}
    assert len(verdicts) == len(result.verdicts) == len(first) + len(second)
    touched = {verdict.item for verdict in result.touched}
    bulk = {
        f"lore:{label}": silence.reason for silence in result.silent for label in silence.labels()
    }
    assert touched | bulk.keys() == verdicts.keys()
    assert all(verdicts[verdict.item] == verdict for verdict in result.touched)
    for item in verdicts.keys() - touched:
        assert (verdicts[item].kept, verdicts[item].reason) == (False, bulk[item])
