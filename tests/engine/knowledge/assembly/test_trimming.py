"""Tests of trimming: a package fits its budget, and instructions are never dropped."""

import random
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import (
    BUCKETS,
    DROP_ORDER,
    Bucket,
    ContextBudgetError,
    Package,
    PackedPage,
    count_section_tokens,
    render_pages,
    trim_pages,
)
from evennia_ai.engine.knowledge.assembly.requests import LoreTask
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from tests.engine.knowledge.assembly.driver import (
    AnArticle,
    AnswersFrom,
    a_page,
    a_plan,
    assembled,
    named,
)

WORDS = TokenCounter("words", "1", lambda text: len(text.split()))
EVERYTHING = (*("instructions", "encyclopedia", "encyclopedia"), *("sources", "talk", "wikipedia"))


def a_part(bucket: Bucket, number: int = 0, words: int = 10, score: float = 0.0) -> PackedPage:
    return PackedPage(
        bucket=bucket,
        heading=f"{bucket}{number}",
        text="word " * words,
        why="test",
        sha256="",
        score=score,
    )


PARTS = [a_part(bucket, number) for number, bucket in enumerate(EVERYTHING)]


def kept_of(limit_tokens: int, parts=PARTS):
    kept, dropped = trim_pages(parts, limit_tokens=limit_tokens, world="", counter=WORDS)
    return [one.heading for one in kept], [one.page.heading for one in dropped]


def test_package_trimming_keeps_pages_that_fit():
    assert kept_of(1000) == ([one.heading for one in PARTS], [])


@pytest.mark.req("S4-21")
def test_package_trimming_drops_sections_in_order():
    gone = ["wikipedia5", "talk4", "sources3", "encyclopedia2", "encyclopedia1"]

    assert kept_of(14) == (["instructions0"], gone)


@pytest.mark.req("S4-20")
@given(limit_tokens=st.integers(14, 130))
def test_trimmed_package_is_within_the_limit(limit_tokens):
    kept, _ = trim_pages(PARTS, limit_tokens=limit_tokens, world="", counter=WORDS)

    assert WORDS.count(render_pages(kept, world="")) <= limit_tokens


@pytest.mark.req("S4-20")
@given(limit_tokens=st.integers(14, 130))
def test_package_trimming_drops_no_page_that_fits(limit_tokens):
    kept, dropped = trim_pages(PARTS, limit_tokens=limit_tokens, world="", counter=WORDS)
    one_more = [*kept, *(one.page for one in dropped[-1:])]

    assert not dropped or WORDS.count(render_pages(one_more, world="")) > limit_tokens


@pytest.mark.req("S4-22")
def test_package_trimming_error_names_the_instructions_that_do_not_fit():
    with pytest.raises(ContextBudgetError, match=r"needs? 10 tokens .* limit is 13") as caught:
        kept_of(13)

    assert caught.value.required == (("instructions0", 10),)


def test_package_trimming_keeps_no_page_with_a_budget_of_zero():
    assert kept_of(0, parts=[a_part("sources")]) == ([], ["sources0"])


def test_package_trimming_accepts_a_package_without_pages():
    assert kept_of(0, parts=[]) == ([], [])


def test_page_dropped_from_a_package_has_a_reason():
    _, dropped = trim_pages(PARTS, limit_tokens=14, world="", counter=WORDS)

    assert dropped[-1].why == "trimmed: the package would have more than 14 tokens with it"


def test_tokens_of_package_sections_are_counted():
    tokens = count_section_tokens(PARTS[:3], world="", counter=WORDS)

    assert tokens == {"instructions": 14, "encyclopedia": 28}


# Tests with complete assemblies over random wikis

SYLLABLES = ("ash", "bel", "cor", "dun", "elm", "fen", "gar", "hol", "ink", "jor")


@pytest.fixture(scope="module")
def corpora() -> list[tuple[Package, int]]:
    """Return forty packages, each with its limit of tokens."""
    return [a_corpus(seed) for seed in range(40)]


def a_corpus(seed: int) -> tuple[Package, int]:
    """Return the package for a task over a random wiki of about sixty pages, and its limit."""
    dice = random.Random(seed)
    names = [f"Place {number}" for number in range(20)]
    pages = [
        _a_main_page(dice, name, names, redirect=dice.random() < 0.1 and names[0]) for name in names
    ]
    for number in range(12):
        source = f"Sources:Paper {number}"
        pages.append(a_page(source, f"{dice.choice(names)} {_prose(dice, 80)}"))
        pages.append(a_page(f"Talk:{source}", _talk(dice)))
    guides = [f"Guide {number}" for number in range(8)]
    pages += [_an_instruction(dice, name, guides) for name in [*guides, "World Bible"]]
    named_ones = dice.sample([*names, "Nowhere", "Sources:Paper 1"], dice.randint(0, 8))
    others = [
        *names[:3],
        *(f"Instructions:Guide {number}" for number in range(3)),
        "Sources:Paper 1",
    ]
    custom = named(*dice.sample(others, dice.randint(0, 3)))
    rules = AssemblyRules(
        wikipedia=dice.random() < 0.7,
        core_instructions=named("Instructions:Guide 0"),
        budget_tokens=dice.choice([1200, 1800, 2500, 4000, 8000]),
        reserve_tokens=100,
        most_entities=20,
    )
    articles = {name: AnArticle(title=f"Real {name}", text=_prose(dice, 60)) for name in names}
    answers = AnswersFrom(pages=pages, plan=a_plan("create_source", *named_ones), articles=articles)
    task = LoreTask(text=f"Write of {_prose(dice, 6)}", custom_pages=custom)
    return assembled(task, answers, rules=rules), rules.limit_tokens


def _prose(dice: random.Random, most: int) -> str:
    return " ".join(dice.choice(SYLLABLES) for _ in range(dice.randint(1, most)))


def _a_main_page(dice, name, names, *, redirect):
    if redirect and name != redirect:
        return a_page(name, f"#REDIRECT [[{redirect}]]")
    links = " ".join(f"[[{other}]]" for other in dice.choices(names, k=dice.randint(0, 8)))
    return a_page(name, f"{_prose(dice, 150)} {links}")


def _talk(dice: random.Random) -> str:
    return f"== Bias Analysis ==\n{_prose(dice, 20)}\n== Gossip ==\nNEVERSHOWN"


def _an_instruction(dice, name, guides):
    requires = ", ".join(dice.sample(guides, dice.randint(0, 3)))
    return a_page(f"Instructions:{name}", f"---\nrequires: [{requires}]\n---\n{_prose(dice, 40)}")


def gone_from(package: Package) -> list[PackedPage]:
    """Return the trimmed pages in the order in which they were dropped."""
    return [one.page for one in package.dropped if one.why.startswith("trimmed")]


@pytest.mark.long
@pytest.mark.req("S4-20")
def test_any_package_is_within_its_budget(corpora):
    sizes = [
        (ESTIMATE.count(package.render()), package.total_tokens, limit_tokens)
        for package, limit_tokens in corpora
    ]

    assert [one for one in sizes if not one[0] == one[1] <= one[2]] == []


@pytest.mark.req("S4-21")
def test_package_trimming_drops_the_lowest_score_of_a_section_first(corpora):
    for package, _ in corpora:
        gone = gone_from(package)

        assert gone == sorted(
            gone, key=lambda one: (DROP_ORDER.index(one.bucket), one.forced, one.score)
        )


@pytest.mark.req("S4-21")
def test_package_trimming_empties_a_section_before_the_next(corpora):
    for package, _ in corpora:
        emptied = [bucket for bucket, _ in groupby(one.bucket for one in gone_from(package))][:-1]

        assert [bucket for bucket in emptied if bucket in package.sections] == []


@pytest.mark.req("S4-22")
def test_package_trimming_never_drops_instructions(corpora):
    dropped = [one for package, _ in corpora for one in package.dropped]

    assert [one for one in dropped if one.page.bucket == "instructions"] == []


@pytest.mark.req("S4-10")
def test_page_on_the_world_is_first_in_any_package(corpora):
    first = {package.pages[0].name for package, _ in corpora}

    assert first == {page_name("Instructions:World Bible")}


@pytest.mark.req("S4-18")
def test_package_has_no_page_twice(corpora):
    for package, _ in corpora:
        found = [one.identity for one in package.pages]

        assert sorted(set(found)) == sorted(found)


@pytest.mark.req("S4-18")
def test_page_found_for_two_sections_is_dropped_only_from_the_later_one(corpora):
    for package, _ in corpora:
        where = {one.identity: BUCKETS.index(one.bucket) for one in package.pages}
        twice = [one.page for one in package.dropped if one.why.startswith("it is in")]
        kept = [one for one in twice if one.identity in where]

        assert [one for one in kept if where[one.identity] > BUCKETS.index(one.bucket)] == []


@pytest.mark.req("S4-16")
def test_package_has_no_talk_sections_that_were_not_wanted(corpora):
    assert [package for package, _ in corpora if "NEVERSHOWN" in package.render()] == []


def test_random_packages_include_long_and_dropped_pages(corpora):
    packages = [package for package, _ in corpora]
    gone = {one.page.bucket for package in packages for one in package.dropped}
    why = {one.why.partition(":")[0] for package in packages for one in package.dropped}

    assert gone == {*DROP_ORDER, "encyclopedia"}
    assert why == {
        "trimmed",
        "it is already in the section instructions",
        "it is already in the section encyclopedia",
    }


def test_package_trimming_counts_no_tokens_of_most_dropped_pages():
    counted: list[int] = []
    counter = TokenCounter("spy", "1", lambda text: counted.append(len(text)) or len(text.split()))
    parts = [a_part("instructions"), *(a_part("sources", n, words=9_000) for n in range(50))]
    counted.clear()
    kept, _ = trim_pages(parts, limit_tokens=100, world="", counter=counter)

    assert [one.bucket for one in kept] == ["instructions"]
    assert sum(counted) < 2 * 9_000 * len("word ")


def test_package_trimming_drops_a_page_named_by_the_author_last():
    parts = [replace(a_part("encyclopedia", 0), forced=True), a_part("encyclopedia", 1, score=9)]

    assert kept_of(20, parts=parts) == (["encyclopedia0"], ["encyclopedia1"])
