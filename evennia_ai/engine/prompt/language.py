"""The language that an NPC speaks: the component that names it to the model, and known languages.

The component is in a prompt only if a setting, the NPC or the player of a private conversation
names a language. Its text is a template with the value `language`, so it has the same bytes in all
prompts with the same language, and a manifest records the language with the other values.
"""

from types import MappingProxyType
from typing import Final

from evennia_ai.engine.prompt.components import PromptComponent

VALUE: Final = "language"
"""The name of the value that is the language in English, such as "German"."""

LANGUAGE: Final = PromptComponent(
    id=1450,
    key="language",
    name="Language",
    description="The language that the NPC speaks. Only if one is named.",
    content=(
        "You speak {{language}}. Write everything that you say, whisper and do in {{language}},"
        " also if others speak another language or if these texts are in another language."
    ),
)
"""A component after the NPC's other standing texts. A builder's component with its key replaces it.

Its place is late, so that prompts in different languages share the cached prefix before it.
"""

NAMES: Final = MappingProxyType(
    dict(
        pair.strip().split(" ", 1)
        for pair in [
            "af Afrikaans",
            " ar Arabic",
            " az Azerbaijani",
            " be Belarusian",
            " bg Bulgarian",
            " bn Bengali",
            "br Breton",
            " bs Bosnian",
            " ca Catalan",
            " cs Czech",
            " cy Welsh",
            " da Danish",
            " de German",
            " el Greek",
            "en English",
            " eo Esperanto",
            " es Spanish",
            " et Estonian",
            " eu Basque",
            " fa Persian",
            " fi Finnish",
            "fr French",
            " fy Frisian",
            " ga Irish",
            " gd Scottish Gaelic",
            " gl Galician",
            " he Hebrew",
            " hi Hindi",
            "hr Croatian",
            " hu Hungarian",
            " hy Armenian",
            " id Indonesian",
            " is Icelandic",
            " it Italian",
            "ja Japanese",
            " ka Georgian",
            " kk Kazakh",
            " ko Korean",
            " la Latin",
            " lb Luxembourgish",
            "lt Lithuanian",
            " lv Latvian",
            " mk Macedonian",
            " mn Mongolian",
            " ms Malay",
            " nb Norwegian Bokmål",
            "nl Dutch",
            " nn Norwegian Nynorsk",
            " pl Polish",
            " pt Portuguese",
            " pt-br Brazilian Portuguese",
            "ro Romanian",
            " ru Russian",
            " sk Slovak",
            " sl Slovenian",
            " sq Albanian",
            " sr Serbian",
            " sv Swedish",
            "sw Swahili",
            " ta Tamil",
            " te Telugu",
            " th Thai",
            " tr Turkish",
            " uk Ukrainian",
            " ur Urdu",
            "vi Vietnamese",
            " yi Yiddish",
            " zh-hans Simplified Chinese",
            " zh-hant Traditional Chinese",
        ]
    )
)
"""The names of languages in English, by the codes that Django uses."""


def language_named(text: str) -> str:
    """Return the code of the language with this code or English name, "" if it is not known."""
    wanted = " ".join(text.casefold().replace("_", "-").split())
    found = (code for code, name in NAMES.items() if wanted in (code, name.casefold()))
    return next(found, "")
