"""Token counters by name: an estimate, a fixed ratio, and those whose vocabulary a package brings.

`gpt-4-turbo` and the like are what SillyTavern calls the counters of those models. Nothing is
fetched: without the package of the extra `tokens` a name is refused, and says how to get it.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.engine.errors import NotYetError
from evennia_ai.engine.prompt.tokens import ESTIMATE, CountText, TokenCounter, ratio_counter
from evennia_ai.formats.scenario.tables import brief, wrong

WHERE: Final = "settings.tokenizer"
_RATIO: Final = re.compile(r"chars/([0-9]{1,4}(?:\.[0-9]{1,6})?)")
# What carries the vocabularies.
_PACKAGE: Final = "bpe_openai"
# A name -> its vocabulary.
VOCABULARIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cl100k_base": "cl100k_base",
        "gpt-3.5-turbo": "cl100k_base",
        "gpt-4": "cl100k_base",
        "gpt-4-turbo": "cl100k_base",
        "gpt-4o": "o200k_base",
        "o200k_base": "o200k_base",
    }
)


def counter_named(name: str) -> TokenCounter:
    """The counter of this name.

    NotYetError: there is none. FormatError: a ratio that is not above 0.
    """
    if name == ESTIMATE.name:
        return ESTIMATE
    if name in VOCABULARIES:
        return _exact(VOCABULARIES[name])
    ratio = _RATIO.fullmatch(name)
    if ratio is None:
        known = ", ".join(("estimate", "chars/R", *VOCABULARIES))
        raise NotYetError(f"{brief(name)} (there are {known})", WHERE)
    per_token = float(ratio[1])
    if not (math.isfinite(per_token) and per_token > 0):
        raise wrong(WHERE, name, "chars/R with R above 0")
    return ratio_counter(per_token)


@lru_cache
def _exact(vocabulary: str) -> TokenCounter:
    """The counter of a vocabulary, one for all who ask: messages keep what it counted."""
    try:
        package: Any = import_module(_PACKAGE)
    except ImportError:
        needs = f"{vocabulary} without its vocabulary (pip install 'evennia-ai[tokens]')"
        raise NotYetError(needs, WHERE) from None
    return TokenCounter(vocabulary, "1", _counting(package.get_encoding(vocabulary)))


def _counting(encoding: Any) -> CountText:
    """Counts what somebody wrote: a text never holds the marks of a model's own."""

    def count(text: str) -> int:
        # Half a pair has no bytes; as the replacement it costs what a sender would pay.
        clean = text.encode("utf-8", "replace").decode()
        return len(encoding.encode_ordinary(clean))

    return count
