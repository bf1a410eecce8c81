"""Keys, and the forms in which a server may send one back."""

import base64
import codecs
from urllib.parse import quote

from evennia_ai.services.net.secrets import PIECE

KEY = "sk-very-secret-4711"
LONG_KEY = "sk-proj-9aZ/Qr+71xVfTq0LwB3nEe5dYs8KuHj2MoPc"
KEYS = (KEY, LONG_KEY, "0123456789abcdef0123456789abcdef", "aB3_dEfG-hIjK7")

FORMS = {
    "as it stands": str,
    "reversed": lambda key: key[::-1],
    "in large letters": str.upper,
    "in rot13": lambda key: codecs.encode(key, "rot13"),
    "in base64": lambda key: base64.b64encode(key.encode()).decode(),
    "reversed in base64": lambda key: base64.b64encode(key[::-1].encode()).decode(),
    "base64 reversed": lambda key: base64.b64encode(key.encode()).decode()[::-1],
    "in a sentence in base64": lambda key: base64.b64encode(f"Key: {key}.".encode()).decode(),
    "in base64 for addresses": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "in base32": lambda key: base64.b32encode(key.encode()).decode(),
    "in hexadecimal": lambda key: key.encode().hex(),
    "in hexadecimal with colons": lambda key: key.encode().hex(":"),
    "escaped for a shell": lambda key: "".join(f"\\x{ord(one):02x}" for one in key),
    "escaped for JSON": lambda key: "".join(f"\\u{ord(one):04x}" for one in key),
    "escaped for an address": lambda key: quote(key, safe=""),
    "each letter escaped for an address": lambda key: "".join(f"%{ord(one):02X}" for one in key),
    "in numbers": lambda key: " ".join(str(ord(one)) for one in key),
    "in bits": lambda key: " ".join(f"{ord(one):08b}" for one in key),
    "with blanks": " ".join,
    "with dashes": "-".join,
    "on lines": "\n".join,
    "with zero-width blanks": "\u200b".join,
    "doubled": lambda key: "".join(2 * one for one in key),
    "in wide letters": lambda key: "".join(
        chr(ord(one) + 0xFEE0) if one.isalnum() else one for one in key
    ),
    "in halves": lambda key: f"{key[: len(key) // 2]} and then {key[len(key) // 2 :]}",
}


def pieces_of(text: str, key: str) -> list[str]:
    """Return the runs of letters and digits of a form of the key that occur in a text."""
    size = min(PIECE, len(key))
    found = "".join(one for one in text.lower() if one.isalnum())
    sought = "".join(one for one in key.lower() if one.isalnum())
    return [one for at in range(len(sought)) if len(one := sought[at : at + size]) == size
            and one in found]  # fmt: skip
