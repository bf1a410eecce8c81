"""Read the explanation and the status in a server's error body, whatever its structure.

Every server and proxy has its own structure, often nested: objects in objects, lists of problems,
JSON inside a text, web pages. The status may be a number, digits in a text or a word. An error may
also come with status 200, or in the middle of a stream.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from evennia_ai.services.net.http import json_value, text_in

# Members that contain an explanation. Outer and more specific members come first.
_WORDS: Final = (
    *("error", "errors", "base_resp", "message", "detail", "msg", "error_msg", "error_message"),
    *("error_description", "status_msg", "reason", "title", "raw"),
)
_CODES: Final = ("status_code", "code", "status", "type")
_WRAPPERS: Final = ("error", "errors", "base_resp", "message", "detail")
_REPLY: Final = frozenset({"choices", "content", "delta", "usage"})
"""Members that only a reply has. An object with one of them is not an error."""

_MOST_DEPTH: Final = 8
_MOST_PROBLEMS: Final = 3
"""How many entries of a list of problems are quoted."""

_STATUSES: Final = range(400, 600)
_NOT_IN_WORD: Final = re.compile(r"[\W_]+|error$")
_STATUS_OF: Final = {
    400: "badrequest invalidrequest invalidargument failedprecondition unsupportedparameter "
    "unsupportedvalue unprocessableentity contextlengthexceeded exceedcontextsize",
    401: "authentication unauthorized unauthenticated invalidapikey",
    402: "paymentrequired insufficientquota insufficientcredits insufficientbalance billing "
    "billinghardlimitreached",
    403: "permission permissiondenied forbidden",
    404: "notfound modelnotfound",
    413: "requesttoolarge",
    429: "ratelimit ratelimited ratelimitexceeded resourceexhausted toomanyrequests",
    500: "server api internal internalserver",
    502: "badgateway upstream provider",
    503: "unavailable serviceunavailable modelunavailable",
    504: "timeout gatewaytimeout deadlineexceeded",
    529: "overloaded engineoverloaded modeloverloaded",
}
_STATUS_OF_WORD: Final = {
    word: code for code, words in _STATUS_OF.items() for word in words.split()
}

_PAGE: Final = re.compile(r"\s*<(?:!doctype|html|head|body|\?xml)\b", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^<>]*>([^<>]*)<", re.IGNORECASE)
_TAG: Final = re.compile(r"<[^<>]*>")
_MOST_PAGE_CHARACTERS: Final = 8_000


def is_error(answer: Mapping[str, Any]) -> bool:
    """True if a JSON object reports an error, though it came with status 200 or in a stream."""
    error = answer.get("error")
    if isinstance(error, Mapping):
        error = any(error.values())
    if error or answer.get("object") == "error" or answer.get("type") == "error":
        return True
    if "base_resp" in answer:  # MiniMax sends this member with each reply; 0 means success.
        base = answer["base_resp"]
        if isinstance(base, Mapping) and base.get("status_code"):
            return True
    if not _REPLY.isdisjoint(answer):
        return False
    # In Anthropic's events, `message` is an object, and the event has a type.
    holds_message = isinstance(answer.get("message"), Mapping) and "type" in answer
    return not holds_message and bool(words_of(answer))


def words_of(body: object, depth: int = 0) -> str:
    """Return the explanation in a parsed error body, or "".

    An error code follows in brackets if it is a word that the explanation does not contain.
    """
    if isinstance(body, str):
        inner = json_value(body) if body.lstrip()[:1] in ("{", "[") else None
        return body.strip() if inner is None else words_of(inner, depth + 1)
    if depth > _MOST_DEPTH:
        return ""
    if isinstance(body, list):
        problems = [words_of(one, depth + 1) for one in body[:_MOST_PROBLEMS]]
        return "; ".join(dict.fromkeys(filter(None, problems)))
    if not isinstance(body, Mapping):
        return ""
    named = {str(name).lower(): value for name, value in body.items()}
    told = [words_of(named.get(name), depth + 1) for name in _WORDS]
    words = ": ".join(list(dict.fromkeys(filter(None, told)))[:2])
    place = named.get("loc")
    # FastAPI and pydantic name the part of the body that has the problem.
    if isinstance(place, list):
        where = ".".join(str(one) for one in place if one != "body")
        words = f"{where}: {words}" if where else words
    # OpenRouter puts the message of the real provider here.
    raw = words_of(named.get("metadata"), depth + 1)
    words = f"{words}: {raw}" if raw and raw not in words else words
    code = named.get("code")
    if not words or not isinstance(code, str) or code in words or code.strip().isdecimal():
        return words
    return f"{words} ({code})" if code else words


def status_of(body: object, depth: int = 0) -> int | None:
    """Return the HTTP status that an error body names, or None if it names none."""
    if isinstance(body, str):
        word, body = body, json_value(body)
        if not isinstance(body, list | dict):
            return _status(word.strip('" '))
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, Mapping) or depth > _MOST_DEPTH:
        return None
    inner = (status_of(body.get(name), depth + 1) for name in _WRAPPERS)
    own = (_status(body.get(name)) for name in _CODES)
    return next((one for one in (*inner, *own) if one is not None), None)


def _status(code: object) -> int | None:
    if isinstance(code, str):
        if not code.strip().isdecimal():
            return _STATUS_OF_WORD.get(_NOT_IN_WORD.sub("", code.lower()))
        code = int(code[:9])
    return code if isinstance(code, int) and code in _STATUSES else None


def words_in(body: bytes) -> str:
    """Return the explanation in the bytes of an error body: JSON, a web page or plain text."""
    value = json_value(body)
    return words_of(value) or readable_start(text_in(body))


def readable_start(text: str) -> str:
    """Return the start of a text. For a web page, return its title or its visible text."""
    text = text[:_MOST_PAGE_CHARACTERS]
    if not _PAGE.match(text):
        return text.strip()
    title = _TITLE.search(text)
    shown = title[1] if title else _TAG.sub(" ", text)
    return " ".join(shown.split()) or "a page without words"


def redirection(location: str) -> str:
    """Return the message about a redirect.

    Redirects are never followed, because the key would go to another server.
    """
    try:
        parts = urlsplit(location)
        to = f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
    except ValueError:
        to = ""
    return f"it redirects to {to}" if to else "it redirects without saying where to"
