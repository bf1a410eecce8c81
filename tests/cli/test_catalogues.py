"""The catalogues of players' texts: complete, fitting, and made without GNU gettext."""

import ast
from dataclasses import replace
from pathlib import Path
from unicodedata import category

import pytest
from django.test import override_settings
from django.utils.translation import trans_real

from evennia_ai.cli import catalogues, run
from evennia_ai.cli.catalogues import (
    Catalogue,
    Entry,
    catalogue_text,
    compiled,
    locale_name,
    misfits,
    read_catalogue,
    source_entries,
)
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.senses import languages, sincere

LOCALE = languages.LOCALE
PATHS = sorted(LOCALE.glob("*/LC_MESSAGES/django.po"))
PLURAL = "Plural-Forms: nplurals=2; plural=(n != 1);\n"


@pytest.mark.parametrize("path", PATHS, ids=[path.parts[-3] for path in PATHS])
def test_catalogue_is_complete_and_its_compiled_file_fits(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    catalogue = read_catalogue(text, where=str(path))
    known = {(one.text, one.plural): one for one in catalogue.entries}
    wanted = {(one.text, one.plural) for one in source_entries()}
    assert set(known) == wanted, "type: evennia-ai catalogue <language> --folder evennia_ai/locale"
    assert [one.text for one in catalogue.entries if not one.is_translated] == []
    assert list(misfits(catalogue)) == []
    assert path.with_suffix(".mo").read_bytes() == compiled(catalogue)
    assert catalogue_text(catalogue) == text


def test_german_is_there_and_addresses_players_informally() -> None:
    assert [path.parts[-3] for path in PATHS] == ["de"]
    entries = read_catalogue(PATHS[0].read_text(encoding="utf-8"), where="de").entries
    polite = [form for one in entries for form in one.forms if " Ihnen" in form or " Ihre" in form]
    assert polite == []


def test_texts_for_players_have_no_drawings_and_no_markup() -> None:
    """A screen reader reads them out, and `|` begins a colour code."""
    for one in read_catalogue(PATHS[0].read_text(encoding="utf-8"), where="de").entries:
        for text in filter(None, (one.text, one.plural, *one.forms)):
            assert {category(sign)[0] for sign in text if sign not in "\n|"} <= set("LNPZS"), text
            assert not any(category(sign) in ("So", "Sk") for sign in text), text
            assert "|" not in text.replace(" | ", ""), text


def test_every_phrase_in_the_source_is_a_literal_or_made_of_a_marked_text() -> None:
    others = set()
    for path in sorted(catalogues.SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Phrase":
                first = node.args[0]
                if not (isinstance(first, ast.Constant) and isinstance(first.value, str)):
                    others.add((path.relative_to(catalogues.SOURCE).as_posix(), ast.unparse(first)))
    assert others == {
        ("npc/speech/output.py", "template"),
        ("npc/senses/languages.py", "NAMES.get(code) or NAMES.get(code.partition('-')[0], code)"),
    }
    assert catalogues.PROJECT == languages.PROJECT


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (Entry(text="Hail {npc}.", forms=("Heil {nsc}.",)), "has {nsc}"),
        (Entry(text="Hail {npc}.", forms=("Heil.",)), "lacks {npc}"),
        (Entry(text="Hail {npc}.", forms=("Heil {npc.key}.",)), "brace that belongs to no name"),
        (Entry(text="{number} day", plural="{number} days", forms=("ein Tag",)), "must have 2"),
        (Entry(text="{number} day", plural="{number} days", forms=("ein Tag", "{number}")), ""),
    ],
)
def test_translation_that_does_not_fit_is_refused(entry: Entry, problem: str) -> None:
    found = list(misfits(Catalogue(header=PLURAL, entries=(entry,))))
    assert any(problem in one for one in found) if problem else found == []


@pytest.mark.parametrize(
    "text", ["msgid x", 'msgid "a', 'msgstr "\\q"', '"loose"', 'msgid "a" "b"', "surprise"]
)
def test_odd_file_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(FormatError, match="line 2"):
        read_catalogue(f"# a comment\n{text}", where="x.po")


def test_catalogue_survives_what_editors_of_translations_write() -> None:
    text = (
        'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
        '#. a comment\n#: a.py\n#, fuzzy\n#| msgid "old"\nmsgid "one"\nmsgstr "eins"\n\n'
        'msgid ""\n"two "\n"lines"\nmsgstr "zwei \\"Zeilen\\""\n\n'
        '#~ msgid "gone"\n#~ msgstr "weg"\n'
    )
    one, two = read_catalogue(text, where="x.po").entries
    assert (one.text, one.forms, one.where) == ("one", (), "a.py")
    assert (two.text, two.forms) == ("two lines", ('zwei "Zeilen"',))


def test_third_language_works_in_a_game_after_the_steps_of_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "locale"
    assert run(["catalogue", "nl", "--folder", str(folder)]) == 0
    assert "not translated" in capsys.readouterr().out
    path = folder / "nl" / "LC_MESSAGES" / "django.po"
    dutch = {
        "gives you a friendly nod.": ("knikt je vriendelijk toe.",),
        "{number} memory": ("{number} herinnering", "{number} herinneringen"),
        sincere.QUESTIONS: ("Ben je een AI? Ben je een bot?",),
    }
    known = read_catalogue(path.read_text(encoding="utf-8"), where="nl")
    own = Entry(text="The bell tolls.", forms=("De klok luidt.",))
    entries = [replace(one, forms=dutch.get(one.text, ())) for one in known.entries]
    path.write_text(catalogue_text(replace(known, entries=(*entries, own))), encoding="utf-8")
    assert run(["catalogue", "Dutch", "--folder", str(folder)]) == 0
    with override_settings(LOCALE_PATHS=[str(folder)]):
        _forget_catalogues()
        assert languages.catalogue_languages() == ("de", "en", "nl")
        assert languages.translate("gives you a friendly nod.", "nl") == "knikt je vriendelijk toe."
        memories = Phrase("{number} memory", plural="{number} memories", number=3)
        assert languages.translate(memories, "nl") == "3 herinneringen"
        assert languages.translate("The bell tolls.", "nl") == "De klok luidt."
        assert languages.translate("thinks it over.", "nl") == "thinks it over."
        assert sincere.language_of_sincere_question("Oren, ben je een AI?") == "nl"
        assert sincere.language_of_sincere_question("Ben je een aide?") == ""
    _forget_catalogues()


def _forget_catalogues() -> None:
    trans_real._translations.clear()
    for cached in (
        languages.catalogue_languages,
        sincere._of_catalogues,
        sincere.language_of_sincere_question,
    ):
        cached.cache_clear()


def test_unknown_language_and_bad_translation_write_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["catalogue", "xx", "--folder", str(tmp_path)]) == 2
    assert "no known language" in capsys.readouterr().err
    run(["catalogue", "pt-br", "--folder", str(tmp_path)])
    path = tmp_path / locale_name("pt-br") / "LC_MESSAGES" / "django.po"
    text = path.read_text(encoding="utf-8")
    bad = text.replace(
        'msgid "Where: {place}."\nmsgstr ""', 'msgid "Where: {place}."\nmsgstr "{x}"'
    )
    path.write_text(bad, encoding="utf-8")
    before = path.with_suffix(".mo").read_bytes()
    assert run(["catalogue", "pt-br", "--folder", str(tmp_path)]) == 2
    assert "Nothing was written" in capsys.readouterr().err
    assert (path.read_text(encoding="utf-8"), path.with_suffix(".mo").read_bytes()) == (bad, before)
