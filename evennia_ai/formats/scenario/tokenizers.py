"""Token counters by name: an estimate, a fixed ratio, and exact counters from a package.

Names such as `gpt-4-turbo` are the ones SillyTavern uses for its counters. The counter
`gpt-4-turbo` counts a whole message as SillyTavern 1.19 does: one token more than OpenAI's. Nothing
is downloaded: without the package of the extra `tokens`, the error says how to install it.
"""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.engine.errors import NotYetError
from evennia_ai.engine.prompt.tokens import (
    ESTIMATE,
    USUAL_PER_MESSAGE,
    TokenCounter,
    ratio_counter,
)
from evennia_ai.formats.scenario.tables import render_briefly, wrong_value_error

WHERE: Final = "settings.tokenizer"
_RATIO: Final = re.compile(r"bytes/([0-9]{1,4}(?:\.[0-9]{1,6})?)")
# The optional package that provides the vocabularies of exact token counters.
_PACKAGE: Final = "bpe_openai"
# Maps the names of exact token counters to the vocabulary that they use.
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
    """Return the token counter with this name.

    Raises:
        NotYetError: there is no such counter, or its package is not installed.
        FormatError: the ratio is not above 0.
    """
    if name == ESTIMATE.name:
        return ESTIMATE
    if name in VOCABULARIES:
        return _exact_counter(VOCABULARIES[name], _PER_MESSAGE.get(name, USUAL_PER_MESSAGE))
    ratio = _RATIO.fullmatch(name)
    if ratio is None:
        known = ", ".join(("estimate", "bytes/R", *VOCABULARIES))
        raise NotYetError(f"{render_briefly(name)} (possible values: {known})", WHERE)
    per_token = float(ratio[1])
    if not (math.isfinite(per_token) and per_token > 0):
        raise wrong_value_error(WHERE, name, "bytes/R with R above 0")
    return ratio_counter(per_token)


# The tokens around each message, for counters that count others than the usual ones.
_PER_MESSAGE: Final = {"gpt-4-turbo": 5}


@lru_cache
def _exact_counter(vocabulary: str, per_message: int) -> TokenCounter:
    """Return the token counter of a vocabulary.

    The counter is created only once, so that messages can cache its counts.
    """
    try:
        package: Any = import_module(_PACKAGE)
    except ImportError:
        needs = f"{vocabulary} without its vocabulary (pip install 'evennia-ai[tokens]')"
        raise NotYetError(needs, WHERE) from None
    encoding = package.get_encoding(vocabulary)

    def count(text: str) -> int:
        # A lone surrogate cannot be encoded in UTF-8. It is sent as a replacement character, so it
        # is counted as one.
        clean = text.encode("utf-8", "replace").decode()
        # text that looks like a special token is counted as plain text
        return len(encoding.encode_ordinary(clean))

    return TokenCounter(vocabulary, "1", count, per_message)
