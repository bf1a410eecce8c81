"""Tests of folders of pages: they are read completely or not at all, and nothing outside them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages import files
from evennia_ai.engine.knowledge.pages.files import ImportProblems, file_of_page, read_folder
from evennia_ai.engine.knowledge.pages.page import NAMESPACES, PageName, TitleError, page_name

NEVER_CLOSED = (
    "the front matter is never closed; close it with a second line of ---, or begin the page with"
    " a blank line"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "Harbour Village"
    made.mkdir()
    return made


def write(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def names(folder: Path) -> list[str]:
    return [page.name.full for page in read_folder(folder).pages]


def problems(folder: Path) -> list[str]:
    with pytest.raises(ImportProblems) as caught:
        read_folder(folder)
    return [str(one) for one in caught.value.problems]


@pytest.mark.parametrize(
    ("file", "page"),
    [
        ("Ferry.md", "Ferry"),
        ("night_ferry.md", "Night ferry"),
        ("Main/Ferry.txt", "Ferry"),
        ("Main/Sources/Ledger.md", "Main:Sources/Ledger"),
        ("Places/The quay.wiki", "Places/The quay"),
        ("Sources/Ledger, Book 2.md", "Sources:Ledger, Book 2"),
        ("instructions/World Bible.md", "Instructions:World Bible"),
        ("Instructions/Create/Source (Base).md", "Instructions:Create/Source (Base)"),
        ("Talk/Ferry.md", "Talk:Ferry"),
        ("Talk/Sources/Ledger.md", "Talk:Sources:Ledger"),
        ("Talk/Places/The quay.md", "Talk:Places/The quay"),
        ("Vol. 9.md", "Vol. 9"),
    ],
)
def test_page_name_is_taken_from_the_path_of_its_file(folder, file, page):
    write(folder, **{file: "text"})

    assert read_folder(folder).pages[0].name == page_name(page)


def test_page_is_read_from_its_file(folder):
    write(
        folder, **{"Sources/Ledger.md": "---\r\nsummary: Sums\r\n---\r\n\r\nOld.\r\n[[Ferry]]\r\n"}
    )

    (page,) = read_folder(folder).pages
    assert (page.body, page.meta.summary) == ("Old.\n[[Ferry]]\n", "Sums")
    assert page.links == (page_name("Ferry"),)


def test_yaml_page_file_has_its_text_in_a_field(folder):
    write(folder, **{"Ferry.yaml": "summary: s\nkind: boat\ntext: |\n  It crosses.\n"})

    (page,) = read_folder(folder).pages
    assert (page.body, page.meta.summary, page.meta.fields) == (
        "It crosses.\n",
        "s",
        {"kind": "boat"},
    )


def test_pages_of_a_folder_are_ordered_by_name(folder):
    write(folder, **{"b.md": "", "Sources/A.md": "", "a.md": "", "Instructions/Z.md": ""})

    assert names(folder) == ["Instructions:Z", "A", "B", "Sources:A"]


def test_knowledge_base_is_read_from_base_yaml(folder):
    told = "key: harbour\nname: The harbour\ntopics: [tides]\nkeywords: [ship]\nrestricted: true\n"
    write(folder, **{"base.yaml": told + "direct_characters: 500\nlocks: view:all()\n"})

    info = read_folder(folder).info
    assert (info.key, info.name, info.topics) == ("harbour", "The harbour", ("tides",))
    assert (info.keywords, info.restricted, info.direct_characters) == (("ship",), True, 500)
    assert info.locks == "view:all()"


def test_knowledge_base_is_named_after_its_folder_without_base_yaml(folder):
    info = read_folder(folder).info

    assert (info.key, info.name) == ("harbour-village", "Harbour Village")


def test_given_key_replaces_the_key_in_base_yaml(folder):
    write(folder, **{"base.yaml": "key: harbour\n"})

    assert read_folder(folder, key="demo").info.key == "demo"


def test_files_that_are_no_pages_are_listed_as_skipped(folder):
    write(folder, **{"map.png": "", "a.md": "", ".git/config": "", "_notes/x.md": ""})

    assert (names(folder), read_folder(folder).skipped) == (["A"], ("map.png",))


def test_import_error_names_every_invalid_page_file_with_its_line(folder):
    write(
        folder,
        **{
            "Good.md": "text",
            "Bad meta.md": "---\nsummary: fine\naliases: 5\n---\n",
            "Twice.md": "---\na: 1\na: 2\n---\n",
            "Open.md": "---\nsummary: x\n",
            "Null.md": "one\ntwo\x00",
            "Odd [title].md": "",
            "List.yaml": "- a\n",
        },
    )

    assert problems(folder) == [
        "Bad meta.md:3: aliases must be a list of texts; put numbers and dates in quotes",
        "List.yaml: must hold fields with values",
        "Null.md:2: there is a null character or half of a surrogate pair; remove it",
        "Odd [title].md: the title 'Odd [title]' has '[' in it, which no title may have",
        f"Open.md:1: {NEVER_CLOSED}",
        "Twice.md: front matter: is not YAML: key 'a' occurs twice in the block of line 2",
    ]


def test_import_error_counts_problems_beyond_the_named_ones(folder):
    write(folder, **{f"bad{number:02}.yaml": "x" for number in range(25)})

    with pytest.raises(ImportProblems) as caught:
        read_folder(folder)
    lines = str(caught.value).split("\n")
    assert lines[0] == f"{folder}: nothing was imported; correct this first"
    assert (len(lines), lines[-1]) == (22, "  and 5 more")


def test_import_error_names_a_page_in_two_files(folder):
    write(folder, **{"Ferry.md": "", "ferry.txt": "", "Main/FERRY.md": ""})

    assert problems(folder) == [
        "ferry.txt: is the page 'Ferry', and so is Ferry.md; remove one",
        "Main/FERRY.md: is the page 'FERRY', and so is Ferry.md; remove one",
    ]


def test_import_error_names_the_line_of_invalid_bytes(folder):
    (folder / "a.md").write_bytes(b"one\ntwo\n\xff")

    assert problems(folder) == ["a.md:3: is not UTF-8 text; store it as UTF-8"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("colour: red\n", "colour is not known; known are key, name"),
        ("restricted: maybe\n", "restricted must be true or false"),
        ("topics: tides\n", "topics must be a list of texts"),
        ("topics: [1]\n", "topics must be a list of texts"),
        ("direct_characters: true\n", "direct_characters must be a whole number"),
        ("mediation: poems\n", "mediation must be summary or hints"),
        ("- a\n", "must hold fields with values"),
    ],
)
def test_import_error_names_invalid_fields_of_base_yaml(folder, text, problem):
    write(folder, **{"base.yaml": text})

    (told,) = problems(folder)
    assert told.startswith(f"base.yaml: {problem}")


def test_symbolic_link_in_a_page_folder_is_refused(folder, tmp_path):
    secret = tmp_path / "secret.md"
    secret.write_text("salt")
    (folder / "a.md").symlink_to(secret)
    (folder / "b").symlink_to(tmp_path)

    assert problems(folder) == [
        "a.md: is a link or a device; put the file itself here",
        "b: is a link or a device; put the file itself here",
    ]


def test_device_in_a_page_folder_is_refused(folder):
    os.mkfifo(folder / "a.md")

    assert problems(folder) == ["a.md: is a link or a device; put the file itself here"]


def test_import_error_names_a_missing_folder(tmp_path):
    assert problems(tmp_path / "none") == [".: is not a folder; name an existing one"]


def test_too_deeply_nested_page_folders_are_refused(folder):
    write(folder, **{"/".join("d" * 21) + "/a.md": ""})

    assert "more than 20 folders deep" in problems(folder)[0]


def test_page_folder_with_too_many_files_is_refused(folder, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILES", 2)
    write(folder, **{"a.md": "", "b.md": "", "c.md": ""})

    assert problems(folder) == [".: has more than 2 files; split it"]


def test_too_large_page_file_is_refused(folder):
    write(folder, **{"a.md": "x" * 1_600_001, "b.md": "x" * 400_001, "c.yaml": "text: 5"})

    assert problems(folder) == [
        "a.md: is larger than 1600000 bytes; split it",
        "b.md: the page has 400001 characters and the limit is 400000",
        "c.yaml: text must be a text of at most 400000 characters",
    ]


@pytest.mark.parametrize(
    "title",
    ["../etc/passwd", "a/../b", "/etc/passwd", ".hidden", "a/_notes", "a//b", "a/ b", "x" * 253],
)
def test_file_of_page_fails_for_a_title_that_leaves_the_folder(title):
    with pytest.raises(TitleError, match="cannot be the name of a file"):
        file_of_page(PageName(namespace="Sources", title=title))


titles = st.text(alphabet="abC/:. ()'_-éß渡", min_size=1, max_size=12).filter(str.strip)


@given(namespace=st.sampled_from(NAMESPACES), title=titles | st.just("Talk/x"))
def test_file_of_page_is_read_back_as_that_page(namespace, title):
    try:
        name = page_name(f"{namespace}:{title}")
        file = file_of_page(name)
    except TitleError:
        return

    assert files._name_of(file) == name
    assert ".." not in file.parts
    assert not file.is_absolute()
