"""Tests of key matching: whole words, letter case, scripts without blanks, and spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.scan import matching
from evennia_ai.engine.lorebook.scan.matching import Key, KeyTable, Shelves, prepare_text
from evennia_ai.engine.text.normal_form import normal_form, normal_positions
from evennia_ai.engine.text.words import find_ascii_word
from tests.effort import little_work


def make_key(text, *, sensitive=False, whole=True):
    form = normal_form(text)
    return Key(form if sensitive else form.casefold(), sensitive, "word" if whole else "part")


def a_table(*keys):
    return KeyTable(enumerate(keys))


def found(key: str, text: str, *, sensitive: bool = False, whole: bool = True):
    """Return the span of the key in the text; None if the text does not contain it."""
    wanted = make_key(key, sensitive=sensitive, whole=whole)
    span = a_table(wanted).hits(prepare_text(text)).get(0)
    return None if span is None else tuple(span)


@pytest.mark.parametrize(
    ("key", "text", "span"),
    [
        ("art", "the art is long", (4, 7)),
        ("art", "an artist", None),
        ("art", "a part", None),
        ("art", "art", (0, 3)),
        ("art", "artful art", (7, 10)),
        ("art", "art's", (0, 3)),
        ("art", "'art'!", (1, 4)),
        ("caf", "café", None),
        ("cafe", "cafe\u0301", None),
        ("Œuvre", "l'œuvre", (2, 7)),
        ("red fox", "a red fox ran", (2, 9)),
        ("red fox", "sacred fox", None),
        ("red fox", "red foxglove", None),
        ("salt, pepper", "salt, pepper please", (0, 12)),
        ("c++", "in c++, mostly", (3, 6)),
        (":)", "hello:)there", (5, 7)),
        ("_x", "a_x", None),
        ("船", "渡船在等", (1, 2)),
        ("さかな", "おさかなです", (1, 4)),
        ("오렌", "오렌은 어디", (0, 2)),
        ("Oren", "你好Oren在", (2, 6)),
        ("Oren", "你好Orens", None),
        ("walrus", "", None),
    ],
)
def test_a_key_is_found_as_a_whole_word(key, text, span):
    assert found(key, text) == span


@pytest.mark.parametrize("sensitive", [True, False])
@pytest.mark.parametrize(
    ("key", "text", "span"),
    [
        ("caf\u00e9", "the cafe\u0301, then", (4, 9)),
        ("cafe\u0301", "the caf\u00e9, then", (4, 8)),
        ("\u1ec7", "\u1eb9\u0302 e\u0302\u0323!", (0, 2)),
        ("\ud55c\uae00", "\u1112\u1161\u11ab\u1100\u1173\u11af\uc740", (0, 6)),
        ("\u304c", "\u304b\u3099\u3060", (0, 2)),
        ("na\u00efve", "e\u0301 e\u0301 nai\u0308ve e\u0301", (6, 12)),
        ("miller's wife", "the miller\u2019s wife", (4, 17)),
        ("miller\u2019s", "the miller\u02bcs wife", (4, 12)),
        ("rock 'n' roll", "rock \u2018n\u2019 roll", (0, 13)),
        ("night-ferry", "a night\u2011ferry", (2, 13)),
        ("night\u2013ferry", "a night-ferry", (2, 13)),
        ("miller's wife", "the miller\u00b4s wife", (4, 17)),
        ("old well", "an old\u00a0well", (3, 11)),
        ("old well", "an old\u2009well", (3, 11)),
        ("old\u2003well", "an old well", (3, 11)),
        ("\u6e2f \u706f", "\u6e2f\u3000\u706f", (0, 3)),
        ("lantern", "a lan\u00adtern", (2, 10)),
        ("lan\u200btern", "\ufefflantern", (1, 8)),
        ("lantern", "a _lantern_!", (3, 10)),
        ("old well", "an __old well__.", (5, 13)),
        ("_lantern_", "a lantern", (1, 9)),
        ("snake_case", "a _snake_case_", (3, 13)),
        ("snake", "a snake_case", None),
        ("case", "snake__case", None),
        ("_", "a _ b", (2, 3)),
        ("stra\u00dfe", "e\u0301 stra\u00dfe", (3, 9)),
    ],
)
def test_key_is_found_in_each_spelling_of_letters_and_signs(key, text, span, sensitive):
    wanted = make_key(key.strip("_") if key == "_lantern_" else key, sensitive=sensitive)
    hit = a_table(wanted).hits(prepare_text(text)).get(0)
    expected = (2, 9) if key == "_lantern_" else span
    assert (hit and tuple(hit)) == expected


def test_found_span_is_of_the_text_as_written_before_normalising():
    hits = a_table(make_key("weg")).hits(
        prepare_text("e\u0301 \u1e9e\u00ad weg", name="Andre\u0301")
    )
    assert tuple(hits[0]) == (6, 9)


WRITTEN = (
    "ab _\u00e9e\u0301\u0323\u0958\u1112\u1161\u11ab"
    "\uac00\u00df\u0130\u2019\u00ad\ufeff\u304b\u3099\u2000\u3000"
)


@given(st.text(WRITTEN, max_size=25))
def test_positions_in_the_normal_form_lead_back_to_the_written_text(text):
    form, places = normal_form(text), normal_positions(text)
    if places is None:
        assert len(form) == len(text)
        return
    assert len(places) == len(form) + 1
    assert list(places) == sorted(places)
    assert places[-1] == len(text)
    for at in range(len(form)):
        if places[at] == places[at + 1]:
            continue
        stretch = text[places[at] : places[at + 1]]
        first = places.index(places[at])
        # In a part of the text, an underscore may be at the edge of a word although it is not in
        # the whole.
        of_stretch = normal_form(stretch).replace("_", " ")
        assert of_stretch == form[first : at + 1].replace("_", " ")


def test_key_search_among_many_combining_marks_takes_linear_time():
    with little_work(3):
        for text in (
            "e" + "\u0301" * 20_000,
            "\u1112\u1161\u11ab" * 7_000,
            "_" * 20_000 + "e\u0301",
        ):
            assert a_table(make_key("walrus")).hits(prepare_text(text)) == {}


def test_key_is_found_inside_words_without_whole_words():
    assert found("art", "a part", whole=False) == (3, 6)


def test_letter_case_is_ignored_unless_the_key_is_case_sensitive():
    assert found("COIN", "a coin") == (2, 6)
    assert found("COIN", "a coin", sensitive=True) is None
    assert found("Coin", "a Coin", sensitive=True) == (2, 6)
    assert found("ΟΔΟΣ", "η οδος") == (2, 6)


def test_found_span_counts_characters_of_the_written_text():
    text = "die STRASSE, die Straße"
    assert found("straße", text) == (4, 11)
    assert found("weg", "ẞẞ weg") == (3, 6)
    assert found("straße", "ﬃ Straße") == (2, 8)


def test_span_of_a_key_in_the_speakers_name_is_negative():
    hits = a_table(make_key("brida")).hits(prepare_text("good day", name="Brida"))
    assert tuple(hits[0]) == (-7, -2)


def test_key_text_searched_in_two_ways_has_two_numbers():
    table = a_table(make_key("art", whole=False), make_key("art"))
    assert set(table.hits(prepare_text("a part"))) == {0}


def test_message_heard_by_several_npcs_is_searched_once():
    table = a_table(make_key("coin"))
    hits = [table.hits(prepare_text("a coin", name="Anna")) for _ in range(3)]
    assert hits[0] is hits[1] is hits[2]


@pytest.mark.parametrize(
    ("key", "text", "at"),
    [
        ("caf", "café", 0),
        ("-a", "b-a", -1),
        ("-a", "b -a", 2),
        ("a", "aaa a", 4),
        ("龍", "の龍話", 1),
    ],
)
def test_ascii_whole_word_has_no_ascii_word_character_next_to_it(key, text, at):
    assert find_ascii_word(key, text) == at
    hits = KeyTable([(0, Key(key, False, "ascii"))]).hits(prepare_text(text))
    assert (0 in hits) == (at >= 0)


def test_hostile_keys_and_texts_take_bounded_time():
    table = a_table(*(make_key("a" * n) for n in range(1, 3000)))
    with little_work(3):
        assert table.hits(prepare_text("a" * 50_000)) == {}
        assert table.hits(prepare_text("aab " * 10_000)) == {}
        huge = a_table(make_key("x" * 1_000_000))
        assert huge.hits(prepare_text("x" * 10_000)) == {}


TINY = "ab B_1é\u0301船か ẞ-"


@given(
    st.text(alphabet=TINY, max_size=30),
    st.lists(
        st.tuples(st.text(alphabet=TINY, min_size=1, max_size=5), st.booleans(), st.booleans())
    ),
)
def test_keys_searched_together_are_found_like_single_keys(text, wanted):
    keys = [make_key(key, sensitive=sensitive, whole=whole) for key, sensitive, whole in wanted]
    hits = a_table(*keys).hits(prepare_text(text))
    alone = [a_table(key).hits(prepare_text(text)) for key in keys]
    assert hits == {n: one[0] for n, one in enumerate(alone) if one}
    assert set(hits) == {n for n, key in enumerate(keys) if stands(key, normal_form(text))}


PHRASES = st.lists(st.text(alphabet="ab", max_size=5), min_size=1, max_size=9).map(" ".join)


@given(PHRASES, st.data())
def test_key_phrase_is_found_at_any_place(text, data):
    first = data.draw(st.integers(0, len(text)))
    phrase = text[first : data.draw(st.integers(first, len(text)))]
    other = data.draw(PHRASES)
    keys = [make_key(key, whole=False) for key in (phrase, other) if key]
    hits = a_table(*keys).hits(prepare_text(text))
    assert {n: span.start for n, span in hits.items()} == {
        n: text.find(key.text) for n, key in enumerate(keys) if key.text in text
    }


def stands(key, text):
    """True if the text contains the key. This slow search tries every position."""
    text = text if key.sensitive else text.casefold()
    places = [at for at in range(len(text) + 1) if text.startswith(key.text, at)]
    ends = [(at, at + len(key.text)) for at in places]
    return any(key.how == "part" or not (inside(text, a) or inside(text, b)) for a, b in ends)


def inside(text, at):
    """True if a word continues over this position."""
    return 0 < at < len(text) and all(c in "abB_1é\u0301ẞs" for c in text[at - 1 : at + 1])


def test_key_search_time_depends_on_the_message_not_on_the_book():
    words = [f"word{n}" for n in range(30_000)]
    table = a_table(*(make_key(word) for word in words))
    texts = [prepare_text(" ".join(words[n * 70 : n * 70 + 250])) for n in range(400)]
    with little_work(3):
        assert all(len(table.hits(text)) == 250 for text in texts)


@given(st.text(max_size=30), st.text(min_size=1, max_size=4), st.booleans())
def test_found_span_is_the_key_and_every_whole_word_is_also_found_as_part(text, key, sensitive):
    span = found(key, text, sensitive=sensitive, whole=False)
    if span is not None and sensitive:
        assert text[span[0] : span[1]] == key
    if found(key, text, sensitive=sensitive, whole=True) is not None:
        assert span is not None


@given(st.text(alphabet="ab é-船", max_size=12), st.text(alphabet="abé船", min_size=1, max_size=2))
def test_a_key_between_blanks_is_always_found(text, key):
    assert found(key, f"{text} {key} {text}") is not None


def test_cached_key_hits_are_limited_by_text_length(monkeypatch):
    monkeypatch.setattr(matching, "MOST_CHARACTERS", 100)
    looked_at: list[str] = []
    table, places = a_table(make_key("coin")), Shelves.places

    def counted(self, text, words):
        looked_at.append(text)
        return places(self, text, words)

    monkeypatch.setattr(Shelves, "places", counted)
    short, long = prepare_text("a coin"), prepare_text("long " * 19)
    for text in (short, short, long, short, short):
        table.hits(text)
    assert looked_at.count(short.folded) == 2 * 2  # once for keys with case, once for others
