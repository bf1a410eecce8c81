"""Whether the values of a manifest from outside are of the kinds that a turn writes.

A manifest in a transcript may have been written by anybody. What is counted, named or shown of it
later must be what its readers take it for; that it names records which are there is looked at in
`evennia_ai.history.transcript_lines`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from evennia_ai.history.turns import TurnManifest
from evennia_ai.prompt.breaks import REASONS
from evennia_ai.prompt.expansion import LAYOUTS

MOST_COUNT: Final = 2**31 - 1
"""What every database stores as a whole number."""

MOST_MODEL: Final = 200


def wrong_field(manifest: TurnManifest) -> str | None:
    """The name of the first field that has a value of another kind, None where all are right."""
    return next((name for name, is_right in _FIELDS if not is_right(getattr(manifest, name))), None)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_COUNT


def _is_model(value: Any) -> bool:
    return _is_text(value) and len(value) <= MOST_MODEL


def _maybe(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_right(value)


def _mapping_of(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Mapping) and all(map(is_right, value.values()))


def _is_verdict(value: Any) -> bool:
    texts = (value.stage, value.item, value.reason)
    return (
        all(map(_is_text, texts))
        and isinstance(value.kept, bool)
        and _is_count(value.tokens)
        and _maybe(_is_text)(value.cause)
    )


def _is_silence(value: Any) -> bool:
    return all(map(_is_text, (value.book, value.reason, value.uids)))


_FIELDS: Final[tuple[tuple[str, Callable[[Any], bool]], ...]] = (
    *((name, _is_count) for name in ("tokens", "limit_tokens", "stable_tokens", "cut", "segment")),
    *((name, _is_text) for name in ("counter", "sha256", "sent_sha256")),
    ("model", _is_model),
    ("layout", lambda value: value in LAYOUTS),
    ("break_reason", _maybe(lambda value: value in REASONS)),
    ("broken_by", _maybe(_is_text)),
    ("shared_tokens", _maybe(_is_count)),
    ("erased", lambda value: isinstance(value, bool)),
    ("breakpoints", lambda value: all(map(_is_count, value))),
    ("by_origin", _mapping_of(_is_count)),
    ("revisions", _mapping_of(_is_text)),
    ("inputs", lambda value: isinstance(value, Mapping)),
    ("anchors", _mapping_of(lambda a: _is_count(a.at) and _is_text(a.digest))),
    ("verdicts", lambda value: all(map(_is_verdict, value))),
    ("silent", lambda value: all(map(_is_silence, value))),
    ("messages", lambda value: all(_is_count(message.tokens) for message in value)),
)
