"""Tests of decorators (Card V3, "Decorators"): syntax, values and fallbacks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.foreign.documents import MAX_NOTICES
from evennia_ai.engine.lorebook.decorators import (
    parse_decorators,
    with_decorator_value,
    without_decorators,
)
from evennia_ai.formats.lorebooks.books import read_book
from tests.effort import little_work
from tests.formats.scenario.builders import an_entry


def names(content: str) -> list[str]:
    return [name for name, _ in parse_decorators(content).decorators]


def test_content_without_decorators_is_unchanged():
    content = "\n  Some lore.\n@@depth 4\n"
    read = parse_decorators(content)
    assert read.decorators == ()
    assert read.text == content


@pytest.mark.req("S3-25")
def test_decorators_and_blank_lines_around_them_are_removed():
    read = parse_decorators("@@depth 4\n@@role user\n\n\nSome lore.\n\nMore.")
    assert read.decorators == (("depth", ("4",)), ("role", ("user",)))
    assert read.text == "Some lore.\n\nMore."


def test_blank_lines_before_and_between_decorators_are_skipped():
    read = parse_decorators("\n\n@@depth 1\n\n  @@role user  \nLore.")
    assert read.decorators == (("depth", ("1",)), ("role", ("user",)))
    assert read.text == "Lore."


LINE_ENDS = ["\r\n", "\r", "\n", "\v", "\f", "\x85", "\u2028", "\u2029", "\x1c"]
UNSEEN = ["\ufeff", "\u200b", "\u2060", "\u00ad", " \ufeff\u3000", "\u200e\u00a0"]


@pytest.mark.parametrize("unseen", UNSEEN)
def test_invisible_characters_do_not_hide_a_decorator(unseen):
    content = f"{unseen}@@depth 1{unseen}\n{unseen}@@role user\n{unseen}\nSome{unseen}lore."
    read = parse_decorators(content)
    assert read.decorators == (("depth", ("1",)), ("role", ("user",)))
    assert read.text == f"Some{unseen}lore."
    assert parse_decorators(with_decorator_value(content, "depth", "3")).value("depth") == "3"
    assert parse_decorators(without_decorators(content, ["depth"])).decorators == (
        ("role", ("user",)),
    )
    plain = f"{unseen}Some lore.\n@@depth 1"
    assert parse_decorators(plain).text == plain


@pytest.mark.parametrize("unseen", ["", *UNSEEN])
@pytest.mark.parametrize("end", LINE_ENDS)
def test_book_reads_decorators_after_invisible_characters(unseen, end):
    book = read_book({"entries": [an_entry(f"{unseen}@@depth 2{end}Lore.")] * 3})
    assert [(one.template.source, one.depth) for one in book.entries] == [("Lore.", 2)] * 3


@pytest.mark.parametrize("end", LINE_ENDS)
def test_every_line_end_ends_a_decorator(end):
    read = parse_decorators(f"@@depth 1{end}@@role system{end}{end}Some lore.")
    assert read.decorators == (("depth", ("1",)), ("role", ("system",)))
    assert read.text == "Some lore."


def test_a_decorator_at_the_very_end_needs_no_line_end():
    read = parse_decorators("@@depth 2")
    assert read.decorators == (("depth", ("2",)),)
    assert read.text == ""


def test_decorator_lines_after_other_text_are_text():
    read = parse_decorators("Lore first.\n@@depth 2\n")
    assert read.decorators == ()
    assert read.text == "Lore first.\n@@depth 2\n"


@pytest.mark.parametrize(
    "line", ["@@depth4", "@@depths 4", "@@dept 4", "@@DEPTH 4", "@@ depth 4", "@@"]
)
def test_decorator_name_is_matched_as_a_whole_word(line):
    read = parse_decorators(f"{line}\nLore.")
    assert read.decorators == ()
    assert read.text == "Lore."
    assert len(read.notices) == 1


def test_unknown_decorator_is_removed_with_a_notice():
    read = parse_decorators("@@paint_it_blue 4\nLore.")
    assert read.text == "Lore."
    assert read.notices == ("@@paint_it_blue is unknown; it is ignored",)


@pytest.mark.req("S3-25")
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("@@depth four", "a whole number"),
        ("@@depth 4.5", "a whole number"),
        ("@@depth", "a whole number"),
        ("@@depth ٤", "a whole number"),
        ("@@role tool", "one of assistant, system, user"),
        ("@@scan_depth -1", "a whole number, 0 or more"),
        ("@@activate_only_every 0", "a whole number, 1 or more"),
        ("@@is_user_icon", "the name of an icon"),
        ("@@additional_keys " + "a," * 1001, "1 to 1000 keys"),
        ("@@additional_keys , ,", "1 to 1000 keys"),
    ],
)
def test_decorator_with_an_invalid_value_is_ignored_with_a_notice(line, wanted):
    read = parse_decorators(f"{line}\nLore.")
    assert read.decorators == ()
    assert read.text == "Lore."
    assert f"needs {wanted}" in read.notices[0]


@pytest.mark.req("S3-27")
def test_unknown_value_of_the_position_decorator_is_ignored_with_a_notice():
    assert names("@@position before_desc\nLore.") == ["position"]
    read = parse_decorators("@@position behind_the_moon\nLore.")
    assert read.decorators == ()
    assert read.notices == (
        "@@position needs one of before_desc, after_desc, personality, scenario; it is ignored",
    )


def test_the_fallback_of_an_unknown_decorator_is_used():
    assert parse_decorators("@@app_only 4\n@@@depth 3\nL").decorators == (("depth", ("3",)),)


@pytest.mark.req("S3-25")
def test_fallback_of_a_decorator_with_an_invalid_value_is_used():
    assert parse_decorators("@@depth x\n@@@depth 3\nL").decorators == (("depth", ("3",)),)


def test_the_fallback_of_a_known_decorator_is_not_used():
    assert names("@@depth 1\n@@@activate_only_after 99\nL") == ["depth"]


def test_first_usable_line_of_a_decorator_and_its_fallbacks_is_used():
    chain = (
        "@@a_one 1\n@@@a_two 1\n@@@a_three 1\n@@@a_four 1\n@@@a_five 1\n@@@depth 2\n@@@role user\nL"
    )
    assert names(chain) == ["depth"]


def test_fallback_without_a_decorator_is_ignored():
    read = parse_decorators("@@@depth 3\nLore.")
    assert read.decorators == ()
    assert read.notices == ("@@depth 3 has no decorator above it; it is ignored",)


@pytest.mark.req("S3-25")
def test_first_decorator_line_of_a_name_counts_after_fallbacks():
    read = parse_decorators("@@app_only 1\n@@@depth 3\n@@depth 5\nL")
    assert read.decorators == (("depth", ("3",)),)
    assert "@@depth occurs twice; the first one counts" in read.notices


def test_additional_keys_decorator_may_repeat_and_its_values_are_split():
    read = parse_decorators("@@additional_keys thanks\n@@additional_keys  coin , ,ferry\nL")
    assert read.lists("additional_keys") == [("thanks",), ("coin", "ferry")]


def test_comma_is_part_of_a_decorator_with_a_single_value():
    assert parse_decorators("@@app 1\n@@@role user,system\nL").decorators == ()


@pytest.mark.req("S3-25")
def test_depth_decorator_is_ignored_next_to_a_position():
    assert names("@@depth 4\n@@position after_desc\nL") == ["position"]


@pytest.mark.req("S3-25")
def test_depth_decorator_counts_next_to_an_ignored_position():
    assert names("@@depth 4\n@@position moon\nL") == ["depth"]


@pytest.mark.req("S3-26")
def test_reverse_depth_decorator_is_ignored_next_to_depth_or_position():
    assert names("@@reverse_depth 1\nL") == ["reverse_depth"]
    assert names("@@reverse_depth 1\n@@depth 4\nL") == ["depth"]
    assert names("@@reverse_depth 1\n@@position after_desc\nL") == ["position"]


def test_the_fallback_of_an_overruled_decorator_is_used():
    assert names("@@depth 4\n@@@role user\n@@position after_desc\nL") == ["role", "position"]


def test_dont_activate_decorator_is_ignored_next_to_activate():
    assert names("@@dont_activate\n@@activate\nL") == ["activate"]


@pytest.mark.parametrize(
    "name", ["instruct_depth", "reverse_instruct_depth", "instruct_scan_depth"]
)
def test_fallback_of_a_decorator_for_text_completion_is_used(name):
    assert names(f"@@{name} 200\n@@@depth 2\nL") == ["depth"]


@pytest.mark.parametrize("name", ["keep_activate_after_match", "dont_activate_after_match"])
def test_after_match_decorator_takes_no_values(name):
    read = parse_decorators(f"@@{name} whatever\nL")
    assert read.decorators == ((name, ()),)
    assert read.notices == ()


def test_is_user_icon_decorator_takes_one_value_with_commas():
    read = parse_decorators("@@is_user_icon  red cap, new \nL")
    assert read.decorators == (("is_user_icon", ("red cap, new",)),)


def test_disable_ui_prompt_decorator_is_ignored():
    read = parse_decorators("@@disable_ui_prompt system_prompt\nL")
    assert read.decorators == ()
    assert read.text == "L"
    assert "is not supported" in read.notices[0]


def test_notices_about_decorator_lines_are_limited():
    read = parse_decorators(
        "".join(f"@@app_{chr(97 + i % 26)}{chr(97 + i // 26)} 1\n" for i in range(600))
    )
    assert len(read.notices) == MAX_NOTICES + 1


def test_eighty_thousand_decorator_lines_are_read_in_linear_time():
    with little_work(3):
        read = parse_decorators("@@nothing_known 1\n" * 40_000 + "@@@depth 2\n" * 40_000 + "L")
    assert read.decorators == (("depth", ("2",)),)


LINES = st.lists(
    st.sampled_from(
        ["@@depth 3", "@@@role user", "@@nope", "@@@depth x", "", "  ", "@@position after_desc"]
    )
    | st.text(max_size=12),
    max_size=8,
)


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_text_after_the_decorators_is_the_end_of_any_content(lines, end):
    content = end.join(lines)
    read = parse_decorators(content)
    assert content.endswith(read.text)
    counted = [name for name, _ in read.decorators if name != "additional_keys"]
    assert len(counted) == len(set(counted))


@given(st.text(min_size=1).filter(lambda t: t.strip() and not t.strip().startswith("@@")))
def test_text_without_a_leading_decorator_is_unchanged(content):
    first = next(line for line in content.replace("\r", "\n").split("\n") if line.strip())
    if not first.strip().startswith("@@"):
        assert parse_decorators(content).text == content


@pytest.mark.parametrize("place", ["personality", "scenario"])
def test_decorator_positions_next_to_card_fields_are_accepted(place: str):
    read = parse_decorators(f"@@position {place}\n@@@depth 2\nL")
    assert read.decorators == (("position", (place,)),)
    assert read.notices == ()


def test_notice_about_any_decorator_line_is_one_line():
    assert parse_decorators("@@\x1b[2Jdepth 1\x85\nText.").notices == (
        "@@ [2Jdepth 1 is not a decorator; it is ignored",
    )
