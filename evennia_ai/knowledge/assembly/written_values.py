"""Written values: what authors mean by what they wrote in the metadata of a page.

Front matter and JSON have numbers, truths and lists; a table on a page has texts alone. Both are
read alike. A value that cannot be meant raises `WrittenValueError`, which says what was wanted.
"""

from typing import Any, Final

from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.assembly.words import words_of
from evennia_ai.knowledge.titles import PageName, TitleError, page_name

MOST_ITEMS: Final = 200
MOST_CHARACTERS: Final = 2_000
_TRUTHS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class WrittenValueError(EvenniaAIError):
    """A value cannot be meant; the text ends a sentence that begins with "must be"."""


def a_truth(value: Any) -> bool:
    """True or false, or a word for one."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (found := _TRUTHS.get(value.strip().casefold())) is not None:
        return found
    raise WrittenValueError("true or false")


def a_number(value: Any, *, least: int, most: int) -> int:
    """A whole number between two bounds."""
    wanted = f"a whole number from {least} to {most}"
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WrittenValueError(wanted)
    return value


def a_line(value: Any) -> str:
    """One line of text."""
    if not isinstance(value, str) or not value.strip() or len(value) > MOST_CHARACTERS:
        raise WrittenValueError(f"a text of at most {MOST_CHARACTERS} characters")
    return " ".join(value.split())


def lines(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas between them."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or len(items) > MOST_ITEMS:
        raise WrittenValueError(f"a list of at most {MOST_ITEMS} texts")
    given = (item for item in items if not isinstance(item, str) or item.strip())
    return tuple(dict.fromkeys(map(a_line, given)))


def phrases(value: Any) -> tuple[str, ...]:
    """A list of texts that each have a word, since they are looked for by their words."""
    found = lines(value)
    if not all(words_of(one) for one in found):
        raise WrittenValueError("a list of texts with at least one word each")
    return found


def instruction_page(value: Any) -> PageName:
    """The title of a page, of the namespace Instructions where it names none."""
    try:
        return page_name(a_line(value), default="Instructions")
    except TitleError as error:
        raise WrittenValueError("the title of a page") from error


def instruction_pages(value: Any) -> tuple[PageName, ...]:
    """Titles of such pages: a list, or one text with commas between them."""
    return tuple(instruction_page(one) for one in lines(value))
