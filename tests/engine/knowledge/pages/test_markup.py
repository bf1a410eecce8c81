"""Tests of markup: pages are read in every notation, and written pages are read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.assembly.gathering import Section, split_sections
from evennia_ai.engine.knowledge.pages.markup import (
    MarkupError,
    build_page,
    find_links,
    read_page,
    strip_links,
    write_page,
    write_wikitext,
)
from evennia_ai.engine.knowledge.pages.page import NAMESPACES, Page, PageMeta, TitleError, page_name
from tests.effort import little_work

FERRY = page_name("Ferry")
TONE = page_name("Instructions:Core/Tone")


def read(text: str, name=FERRY) -> Page:
    return read_page(name, text)


def linked(body: str) -> list[str]:
    return [name.full for name in find_links(body)]


def headings(body: str) -> list[tuple[int, str, str]]:
    return [(one.level, one.heading, one.text) for one in split_sections(body)]


class TestPlain:
    def test_page_text_without_metadata_is_the_body(self):
        assert read("It crosses at dusk.\n") == Page(name=FERRY, body="It crosses at dusk.\n")

    def test_page_text_may_be_empty(self):
        assert read("") == Page(name=FERRY, body="")

    @pytest.mark.parametrize(
        "text", ["----\nrule", "\n---\na: b\n---\n", "<nowiki>{{box}}</nowiki>"]
    )
    def test_page_text_that_only_looks_like_metadata_stays_in_the_body(self, text):
        assert read(text).body == text

    def test_too_long_page_text_is_refused(self):
        with pytest.raises(MarkupError, match="400001 characters and the limit is 400000"):
            read("x" * 400_001)

    @pytest.mark.parametrize("sign", ["\x00", "\ud800"])
    def test_unstorable_character_in_a_page_is_refused_with_its_line(self, sign):
        with pytest.raises(MarkupError, match="line 3: there is a null character"):
            read(f"one\ntwo\n{sign}")


class TestFrontMatter:
    def test_yaml_between_lines_of_dashes_is_metadata(self):
        page = read(
            "---\nsummary: Crosses.\ntopics: [water]\naliases: [Boat, The boat]\ntags: stub\n"
            "requires:\n- Quay\n- Instructions:Core/Tone\nlocks: view:perm(Admin)\nage: 40\n"
            "---\n\nText.\n"
        )

        assert page == Page(
            name=FERRY,
            body="Text.\n",
            meta=PageMeta(
                summary="Crosses.",
                topics=("water",),
                aliases=("Boat", "The boat"),
                tags=("stub",),
                requires=(page_name("Quay"), TONE),
                fields={"age": 40},
            ),
            locks="view:perm(Admin)",
        )

    def test_blank_line_after_front_matter_is_optional(self):
        assert read("---\na: 1\n---\nText.") == read("---\na: 1\n---\n\nText.")

    def test_empty_metadata_block_gives_no_metadata(self):
        assert read("---\n---\nText.") == Page(name=FERRY, body="Text.")

    def test_windows_line_ends_in_a_page_are_accepted(self):
        assert read("---\r\nsummary: s\r\n---\r\n\r\nText.").meta.summary == "s"

    def test_dates_and_words_like_no_stay_text_in_metadata(self):
        assert read("---\nday: 1704-05-01\ncanonical: no\n---\n").meta.fields == {
            "day": "1704-05-01",
            "canonical": "no",
        }

    @pytest.mark.parametrize(
        ("block", "problem"),
        [
            ("a: 1\na: 2", "key 'a' occurs twice in the block of line 2"),
            ("a: &x 1\nb: *x", "alias '[*]x' is not allowed"),
            ("a: !!python/object:os.system 1", "line 2"),
            ("- a", "line 2: the metadata must be fields with values"),
            ("a: 1\nb: [", "line 4"),
            ("a: 1\nsummary: 5", "line 3: summary must be text, not a number"),
            ("a: 1\nrequires: {x: y}", "line 3: requires must be a list of texts"),
            ("a: 1\nrequires: ['x[y]']", "line 3: requires names no page"),
            ("aliases: ['#']", "line 2: aliases names no page"),
            ("redirect: '{}'", "line 2: redirect names no page"),
            (f"requires: {[str(n) for n in range(201)]}", "201 items and the limit is 200"),
            (f"aliases: {[str(n) for n in range(201)]}", "201 items and the limit is 200"),
            (f"a: {'x' * 40_001}", "limit is 40000"),
        ],
    )
    def test_wrong_metadata_is_refused_with_its_line(self, block, problem):
        with pytest.raises(MarkupError, match=problem):
            read(f"---\n{block}\n---\nText.")

    def test_unclosed_metadata_block_is_refused(self):
        with pytest.raises(MarkupError, match="line 1: the front matter is never closed"):
            read("---\nsummary: s\n\nText.")


@pytest.mark.req("S4-45")
class TestRequires:
    """Instruction pages declare required pages as JSON, in an info table or in front matter."""

    WANTED = (page_name("Instructions:World Bible"), page_name("Instructions:Core/Tone"))

    def test_requires_is_read_from_json(self):
        text = '<nowiki>{"id": "x", "requires": ["Instructions:World Bible", "Core/Tone"]}</nowiki>'

        assert read(text, page_name("Instructions:Interview")).meta.requires == self.WANTED

    def test_requires_is_read_from_an_info_table(self):
        text = "{|\n|-\n! requires\n| World Bible, [[Instructions:Core/Tone|Tone]]\n|}"
        linked = text.replace("World Bible", "[[World Bible]]")

        assert read(linked, page_name("Instructions:Interview")).meta.requires == self.WANTED

    def test_requires_is_read_from_front_matter(self):
        text = "---\nrequires: [World Bible, 'Instructions:Core/Tone']\n---\n"

        assert read(text, page_name("Instructions:Interview")).meta.requires == self.WANTED

    def test_a_page_outside_the_instructions_requires_pages_of_the_encyclopedia(self):
        page = read("---\nrequires: [World Bible]\n---\n", page_name("Sources:Ledger"))

        assert page.meta.requires == (page_name("World Bible"),)


class TestJson:
    def test_object_in_nowiki_is_metadata_at_any_place(self):
        page = read('Before.\n\n<nowiki>\n{"summary": "s",\n "age": 4}\n</nowiki>\nAfter.')

        assert (page.meta.summary, page.meta.fields) == ("s", {"age": 4})
        assert page.body == "Before.\n\nAfter."

    def test_heading_named_metadata_is_removed_with_the_metadata_block(self):
        page = read('Before.\n\n== Metadata ==\n<nowiki>{"age": 4}</nowiki>\n\n== After ==\n')

        assert page.body == "Before.\n\n== After ==\n"

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('x\n<nowiki>{"a": 1,\n}</nowiki>', "is not valid JSON .*line [23]"),
            ('x\n<nowiki>{"a": 1, "a": 2}</nowiki>', "line 2: member 'a' occurs twice; remove"),
            ('x\n<nowiki>{"a": 1}', "line 2: <nowiki> with metadata is never closed"),
            ('<nowiki>{"a": NaN}</nowiki>', "is not valid JSON"),
            ('\n<nowiki>{"a": 1,\n"summary": 1}</nowiki>', "line 3: summary must be text"),
            (f'<nowiki>{{"a": "{"x" * 40_000}"}}</nowiki>', "limit is 40000"),
            (f'<nowiki>{{"a": {"[" * 100}{"]" * 100}}}</nowiki>', "nested"),
        ],
    )
    def test_wrong_metadata_is_refused_with_its_line(self, text, problem):
        with pytest.raises(MarkupError, match=problem):
            read(text)


class TestInfoTable:
    def test_wiki_table_of_two_columns_is_metadata(self):
        page = read(
            "== Metadata ==\n"
            '{| class="wikitable"\n|+ About\n! Field !! Value\n|-\n| id || create-interview\n|-\n'
            "! Type\n| style=\"width:9em\" | ''workflow''\n|-\n| include by default: || yes\n|-\n"
            "| Priority || 480\n|-\n| topics ||\n* ink\n* paper\n|-\n| aliases || A<br>B, C\n|-\n"
            '| tags || ["x", "y"]\n|-\n| summary || Two, or [[more]].\n|}\n\nText.',
            TONE,
        )

        assert page.meta == PageMeta(
            summary="Two, or [[more]].",
            topics=("ink", "paper"),
            aliases=("A", "B", "C"),
            tags=("x", "y"),
            fields={
                "id": "create-interview",
                "type": "workflow",
                "include_by_default": True,
                "priority": 480,
            },
        )
        assert page.body == "Text."

    def test_metadata_table_may_redirect_the_page(self):
        assert read("{|\n| redirect || [[The boat]]\n|}").meta.redirect == page_name("The boat")

    @pytest.mark.parametrize(
        "text",
        [
            "{|\n| tide || noon\n|}",
            "{|\n| id || x || y\n|}",
            "{|\n| id || x\n",
            "{|\n| id || x\n|-\n| Id || y\n|}",
            "Text first.\n{|\n| id || x\n|}",
            "{|\n|}",
        ],
    )
    def test_wiki_table_that_is_no_metadata_stays_in_the_text(self, text):
        assert read(text).body == text


class TestRedirect:
    @pytest.mark.parametrize(
        "text",
        [
            "#REDIRECT [[the boat]]",
            "\n#redirect: [[The boat#Bow|it]] \n",
            "---\nredirect: The boat\n---\n",
        ],
    )
    def test_redirect_has_its_target(self, text):
        assert read(text) == Page(
            name=FERRY, body="", meta=PageMeta(redirect=page_name("The boat"))
        )

    def test_redirect_without_a_namespace_leads_to_the_encyclopedia(self):
        assert read("#REDIRECT [[Boat]]", TONE).meta.redirect == page_name("Boat")

    def test_redirect_to_an_invalid_title_is_refused(self):
        with pytest.raises(MarkupError, match="line 2: redirect names no page"):
            read("\n#REDIRECT [[a{b]]")


class TestLinks:
    def test_wiki_links_are_listed_once_in_order(self):
        assert linked("[[Quay]] [[oren|he]], [[Sources:ledger#Sums|sums]] and [[quay]]") == [
            "Quay",
            "Oren",
            "Sources:Ledger",
        ]

    @pytest.mark.parametrize(
        "body",
        [
            "<nowiki>[[Quay]]</nowiki>",
            "<!-- [[Quay]] -->",
            "<pre>\n[[Quay]]\n</pre>",
            "<code>[[Quay]]</code>",
            "`[[Quay]]`",
            "```\n[[Quay]]\n```",
            "~~~\n[[Quay]]\n~~~",
            "[[#Here]]",
            "[[]]",
            "[[a\nb]]",
            "[[a{b}]]",
            "[[File:map.png|a map]]",
            "[[Category:Boats]]",
            "[Quay](Quay)",
        ],
    )
    def test_brackets_around_other_text_are_no_wiki_links(self, body):
        assert linked(body) == []

    @pytest.mark.parametrize(
        "body", ["`[[Quay]]", "<nowiki>[[Quay]]", "`a\n[[Quay]]`", "``` [[Quay]]"]
    )
    def test_unclosed_code_mark_hides_no_wiki_link(self, body):
        assert linked(body) == ["Quay"]

    def test_page_has_its_links(self):
        assert read("---\na: 1\n---\n[[Quay]]").links == (page_name("Quay"),)


class TestSections:
    def test_mediawiki_headings_split_a_text(self):
        body = "Intro.\n\n== First ==\none\n=== Inner ===\n two \n= Top =\n"

        assert headings(body) == [
            (0, "", "Intro."),
            (2, "First", "one"),
            (3, "Inner", "two"),
            (1, "Top", ""),
        ]

    def test_markdown_headings_split_a_text(self):
        assert headings("# Top\n## First ##\none\n\n####### no\n#no") == [
            (1, "Top", ""),
            (2, "First", "one\n\n####### no\n#no"),
        ]

    def test_hash_is_a_list_item_among_mediawiki_headings(self):
        assert headings("== Steps ==\n# one\n# two") == [(2, "Steps", "# one\n# two")]

    def test_headings_in_code_are_ignored(self):
        assert headings("```\n# no\n```\n<nowiki>\n== no ==\n</nowiki>") == [
            (0, "", "```\n# no\n```\n<nowiki>\n== no ==\n</nowiki>")
        ]

    def test_code_in_a_heading_stays_in_the_heading(self):
        assert headings("== The `bell` ==\ntext") == [(2, "The `bell`", "text")]

    @pytest.mark.parametrize("line", ["==", "= =", "=====", "==a", "a==", "# ", "`x` == a =="])
    def test_lines_that_only_resemble_headings_are_text(self, line):
        assert [one.level for one in split_sections(f"{line}\ntext")] == [0]

    def test_empty_page_text_has_no_sections(self):
        assert split_sections("") == ()

    def test_heading_without_text_is_a_section(self):
        assert split_sections("== A ==") == (Section(level=2, heading="A", text=""),)


plain = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
words = plain.map(str.strip).filter(bool)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3),
    max_leaves=6,
)
known = {"summary", "topics", "aliases", "tags", "requires", "redirect", "locks"}


@st.composite
def names(draw):
    title = draw(st.text(alphabet="abC/:. ()'é渡", min_size=1, max_size=12))
    namespace = draw(st.sampled_from(NAMESPACES))
    try:
        name = page_name(f"{namespace}:{title}")
        return name if page_name(name.full) == name else FERRY
    except TitleError:
        return FERRY


@st.composite
def some_pages(draw):
    each_once = {"unique": True, "max_size": 3}
    meta = PageMeta(
        summary=draw(plain).strip(),
        topics=tuple(draw(st.lists(words, **each_once))),
        aliases=tuple(name.full for name in draw(st.lists(names(), **each_once))),
        tags=tuple(draw(st.lists(words, **each_once))),
        requires=tuple(draw(st.lists(names(), **each_once))),
        redirect=draw(st.none() | names()),
        fields=draw(
            st.dictionaries(plain.filter(lambda key: key not in known), values, max_size=3)
        ),
    )
    body = draw(plain | st.sampled_from(["---\n", "#REDIRECT [[A]]", "\n\na", "{|\n| id || x\n|}"]))
    return Page(
        name=draw(names()), body=body, meta=meta, links=find_links(body), locks=draw(plain).strip()
    )


@given(page=some_pages())
def test_written_page_is_read_back(page):
    assert read_page(page.name, write_page(page)) == page


@given(page=some_pages())
def test_page_written_as_wikitext_is_read_back(page):
    assert read_page(page.name, write_wikitext(page)) == page


@given(body=st.text(alphabet="-#=<>[]{}|`~! \nnowikipreREDIRECT:", max_size=200))
def test_any_text_is_a_page_or_a_markup_error(body):
    try:
        page = read_page(FERRY, body)
    except MarkupError as error:
        assert error.problem
    else:
        assert read_page(FERRY, write_page(page)) == page


def test_redirect_is_written_as_a_wiki_redirect():
    page = build_page(FERRY, {"redirect": "Sources:Boat"}, "")

    assert write_wikitext(page) == "#REDIRECT [[Sources:Boat]]\n"


def test_wiki_metadata_cannot_close_its_block():
    page = build_page(FERRY, {"summary": "</nowiki>"}, "Text.")

    assert write_wikitext(page) == '<nowiki>{\n "summary": "\\u003c/nowiki>"\n}</nowiki>\nText.'


def test_page_without_metadata_is_written_unchanged():
    assert write_page(read("Text.")) == write_wikitext(read("Text.")) == "Text."


@pytest.mark.parametrize(
    "text",
    [
        "[[" * 50_000,
        "[[a|" * 25_000,
        "`" * 99_999,
        "`a\n" * 33_250,
        "<nowiki>" * 12_500,
        "<nowiki>{" * 11_000,
        ("<nowiki>" + " " * 900) * 110,
        "<!--" * 25_000,
        "```\n" * 24_999,
        "=" * 100_000,
        "== a ==\n" * 12_500,
        "# a\n" * 25_000,
        "#" * 100_000,
        "{|" + "|-\n" * 32_500,
        "{|\n" + "| id || x\n" * 10_000 + "|}",
        "---\n" + "\n" * 39_000 + "---\n" + "---\n" * 20_000,
        "---\n" + "[" * 39_000 + "\n---\n",
        "---\n" + "a: {b: " * 5_000 + "\n---\n",
        " " * 100_000,
        "#REDIRECT [[" * 8_250,
        "== metadata " * 8_250,
        "=" * 50_000 + "metadata",
    ],
)
def test_hostile_page_texts_take_linear_time(text):
    with little_work(5):
        try:
            page = read_page(FERRY, text)
            split_sections(page.body)
            write_page(page)
        except MarkupError:
            pass


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[[Slack Water|slack]] is [[near]].", "slack is near."),
        ("[[Oren| ]] and [[ Talk:Oren ]]", "Oren and Talk:Oren"),
        ("a | b, [[open, [single]", "a | b, [[open, [single]"),
    ],
)
def test_wiki_link_is_shown_as_its_label_or_title(text: str, seen: str) -> None:
    assert strip_links(text) == seen
