"""Knowledge searches and memories find words in other inflected forms."""

import pytest

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.postings import page_weights
from evennia_ai.engine.knowledge.relevance import (
    index_page,
    query_weights,
    rarities_among,
    score_page,
)
from evennia_ai.engine.memory.memories import comparison_words
from evennia_ai.engine.text.word_forms import LANGUAGES, stems_of

FORMS = {
    "en": (
        "wolves wolf, ferries ferry, knives knife, women woman, mice mouse, dwarves dwarf,"
        "crossings crossing, crossed crosses, trading traded, witches witch, thieves thief,"
        "fishermen fisherman, werewolves werewolf, smuggling smuggled, children child"
    ),
    "de": (
        "Häuser Haus, Wölfe Wolf, Männer Mann, Städte Stadt, Bücher Buch, Straßen Straße,"
        "Königinnen Königin, Wäldern Wald, Drachen Drache, Schiffe Schiffes, Mäuse Maus,"
        "Töchter Tochter, kleine kleinen"
    ),
    "fr": (
        "chevaux cheval, journaux journal, travaux travail, yeux œil, châteaux château,"
        "épées épée, loups loup, royaux royale, reines reine, vitraux vitrail, îles île,"
        "marchandes marchand, parlait parler"
    ),
    "es": (
        "canciones canción, luces luz, peces pez, ciudades ciudad, ladrones ladrón, reyes rey,"
        "mujeres mujer, barcos barco, ríos río, espadas espada, capitanes capitán, hablaba hablar"
    ),
    "ru": (
        "городов город, волков волк, рыцарей рыцарь, замки замок, отцы отец, друзья друг,"
        "корабля кораблю, огня огонь, людей человек, ключами ключ, дети ребёнок, чёрный черного,"
        "короля король, башен башня"
    ),
    "zh": (
        "旧灯塔 灯塔, 渡船口 渡船, 清晨的渡船 渡船, 雪狼群 狼群, 老渔夫 渔夫, 城市里 城市,"
        "国王们 国王, 骑士团 骑士, 图书馆里 图书馆, 森林中 森林"
    ),
    "ja": (
        "灯台守 灯台, 渡し船 渡し, 狼たちの 狼たち, 城下町 城下, 騎士団 騎士, 黒猫の手 黒猫,"
        "漁師たち 漁師, 王国の 王国, ガラスの瓶 ガラス, 古い図書館 図書館"
    ),
}
OTHERS = {
    "en": "ferry fairy, wolf wool, castle cast, organ organise, bard bird, page pageant",
    "de": "Haus Hase, Wolf Wolke, Mann Mahnung, Burg Berg, Ritter Reiter, Maus Mut",
    "fr": "cheval cheveu, épée épi, loup coup, roi roue, mer mur, château chat",
    "es": "canción cañón, luz lucha, rey reina, mar mal, barco barro, pez peso",
    "ru": "город горд, волк волос, замок замена, друг драка, меч мечта, рыба рыбак",
    "zh": "灯塔 塔灯, 国王 王子, 骑士 骑马, 渡船 船长, 城市 城墙, 森林 树林",
    "ja": "灯台 台所, 騎士 武士, 漁師 教師, 王国 外国, 城下 天下, 図書 読書",
}
CONFUSED = {
    "en": "wicked wick",
    "de": "Burg Bürger",
    "fr": "loup loupe, mer mère",
    "es": "mar marido",
    "ru": "друг другой",
}
MISSED = {
    "en": "ran run, went go, bought buy, better good",
    "de": "ging gehen, sprach sprechen, besser gut",
    "fr": "vieux vieille, va aller, belle beau",
    "es": "fue ir, dijo decir, rey reina",
    "ru": "шёл идти, лучше хороший, псы пёс",
}


def pairs(table: dict[str, str]) -> list[tuple[str, str, str]]:
    listed = [(code, pair.split()) for code, told in table.items() for pair in told.split(",")]
    both = [(code, one, other) for code, (one, other) in listed]
    return both + [(code, other, one) for code, one, other in both if code not in ("zh", "ja")]


def languages(code: str) -> tuple[str, ...]:
    """Return a language's code with the codes of the default languages."""
    return tuple(dict.fromkeys([code, "en", "ru"])) if code in LANGUAGES else ("en", "ru")


def a_page(body: str, title: str = "X") -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta())


def is_found(code: str, asked: str, text: str) -> bool:
    """True if a search finds the text, in stored pages and in pages in memory alike."""
    wanted = query_weights(asked, languages(code))
    words = index_page(a_page(text), languages(code))
    in_memory = score_page(words, rarities_among(wanted, [words])) > 0
    indexed = {term.word for term in page_weights(a_page(text), languages(code))}
    assert in_memory == bool(indexed & wanted.keys())
    return in_memory


def is_recalled(code: str, asked: str, text: str) -> bool:
    said = comparison_words(asked, languages(code))
    return bool(said & comparison_words(text, languages(code)))


def test_page_is_found_by_another_form_of_a_word() -> None:
    assert [row for row in pairs(FORMS) if not is_found(*row)] == []


def test_memory_is_recalled_by_another_form_of_a_word() -> None:
    assert [row for row in pairs(FORMS) if not is_recalled(*row)] == []


def test_search_does_not_find_a_word_with_another_stem() -> None:
    assert [row for row in pairs(OTHERS) if is_found(*row) or is_recalled(*row)] == []


def test_irregular_word_forms_outside_the_tables_are_not_found() -> None:
    assert [row for row in pairs(MISSED) if is_found(*row)] == []


def test_different_words_with_one_stem_match() -> None:
    assert [row for row in pairs(CONFUSED) if not is_found(*row)] == []


def test_each_language_has_ten_pairs_of_word_forms() -> None:
    assert min(len(told.split(",")) for told in FORMS.values()) >= 10


def test_page_with_the_searched_word_form_scores_higher_than_with_another_form() -> None:
    asked = query_weights("crossings", ("en",))
    pages = [index_page(a_page(text), ("en",)) for text in ("crossings", "crossed", "boats")]
    itself, other, none = (score_page(words, dict(asked)) for words in pages)
    assert itself > other > none == 0
    assert other / itself == pytest.approx(0.6, abs=0.03)


def test_page_score_is_nearly_the_same_whether_the_stem_is_a_word_or_not() -> None:
    asked = query_weights("wolf crossing", ("en",))
    pages = [index_page(a_page(text), ("en",)) for text in ("wolf", "crossing")]
    one, other = (score_page(words, dict(asked)) for words in pages)
    assert other / one == pytest.approx(1, abs=0.07)


def test_word_forms_are_found_in_each_of_several_languages() -> None:
    both = query_weights("Häusern", ("de", "en"))
    assert both == {"hausern": 0.4, "haus": 1.0}


def test_word_has_stems_only_in_languages_that_use_its_script() -> None:
    assert stems_of("волков", ("en", "de", "ru")) == ("волк",)
    assert stems_of("wolves", ("ru",)) == stems_of("狼群", ("en", "ru")) == ()


def test_stems_use_the_accents_of_a_word() -> None:
    assert is_found("de", "Häusern", "Haus")
    assert not is_found("en", "Häusern", "Haus")


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_stems(code: str) -> None:
    word = {"el": "πόλεις", "ru": "городов"}.get(code, "dragon")
    assert len(stems_of(word, (code,))) == 1
