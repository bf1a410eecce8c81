# SPDX-License-Identifier: MIT
"""Answer the kit's task `card` with tavern-card, a library on PyPI (pip install tavern-card)."""

from base64 import b64decode
from importlib.metadata import version
from json import dumps

import tavern_card


def card(given):
    """Return the card that the library makes of a file, which is always one of version 2."""
    file = b64decode(given["base64"]) if "base64" in given else None
    try:
        if file is not None and file.startswith(b"\x89PNG"):
            return {"written": tavern_card.parse_png_card(file)}
        if file is not None:
            return "the library reads JSON and PNG files only"
        text = given["card_text"] if "card_text" in given else dumps(given["card"])
        return {"written": tavern_card.parse_card(text)}
    except ValueError as error:
        return {"error": str(error)}


if __name__ == "__main__":
    from loop import serve

    serve("tavern-card", version("tavern-card"), {"card": card})
