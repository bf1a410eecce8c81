"""Phrases: texts of the game for players, which are filled in and translated when they are shown.

A phrase keeps its English template apart from its values. So each reader can get it in their own
language, and words of players are only ever values. `evennia_ai.npc.senses.languages` translates
phrases. `evennia_ai.cli.catalogues` finds the templates in the source by the names `Phrase` and
`translatable`, so their first arguments must be literals.
"""

from collections.abc import Callable
from typing import Final

Lookup = Callable[[str, str, int], str]
"""Returns the translation of a template. The other arguments are its plural and the number."""
NUMBER: Final = "number"
"""The value that decides between a template and its plural."""


def translatable(text: str) -> str:
    """Return the text itself. The call marks it for the catalogues of translations."""
    return text


class Phrase:
    """A template in English and its values. As a string, it is the English text.

    A value may be a phrase, or a tuple of texts and phrases, which are joined by commas.
    """

    __slots__ = ("plural", "template", "values")

    def __init__(
        self,
        template: str,
        *,
        plural: str = "",
        **values: "str | int | Phrase | tuple[object, ...]",
    ) -> None:
        """Keep a template with `{names}` of values.

        Args:
            template: The text in English.
            plural: The text if the value `number` is not 1.
            values: What the names stand for.
        """
        self.template = template
        self.plural = plural
        self.values = values

    def __str__(self) -> str:
        return self.filled(_english)

    def __repr__(self) -> str:
        return f"Phrase({str(self)!r})"

    def filled(self, lookup: Lookup) -> str:
        """Return the text in the language of `lookup`.

        Raises:
            KeyError, IndexError, ValueError: The translation does not fit the values.
        """
        number = self.values.get(NUMBER, 0)
        template = lookup(self.template, self.plural, number if isinstance(number, int) else 0)
        return template.format_map({name: _text(one, lookup) for name, one in self.values.items()})


def _text(value: object, lookup: Lookup) -> str:
    if isinstance(value, Phrase):
        return value.filled(lookup)
    if isinstance(value, tuple):
        return ", ".join(_text(one, lookup) for one in value)
    return str(value)


def _english(template: str, plural: str, number: int) -> str:
    return plural if plural and number != 1 else template
