"""Everything about one item of a report, as text: a message, or what an origin became.

An item is an origin such as `component:mood`, its bare key, the number of a message, or what an
entry of lore is called, where whoever asks knows the names.
"""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Final

from evennia_ai.prompt.messages import Part
from evennia_ai.prompt.report import _MOST_NAMES, STAGES, Report, indented
from evennia_ai.prompt.trace import Verdict, about
from evennia_ai.text.columns import WIDTH, clipped, visible, wrapped

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
_MOST_COMPARED: Final = 20_000


def explain_lines(
    report: Report, item: str, *, names: Mapping[str, str] = NO_NAMES, width: int = WIDTH
) -> list[str]:
    """Everything about one component, entry, note or block, or about the message of a number.

    `names` are those of entries by their origin. What nothing is called lists what is near it,
    what several are called lists them.
    """
    if is_message(report, item):
        return _about_message(report, int(item.removeprefix("#")), width)
    meant = origins_meant(report, item, names=names)
    if not meant:
        return _none_called(report, item, names, width)
    if len(meant) > 1:
        which = ", ".join(_titled(origin, names) for origin in meant[:_MOST_NAMES])
        more = f" and {len(meant) - _MOST_NAMES} more" if len(meant) > _MOST_NAMES else ""
        return wrapped(f"{visible(clipped(item, 60))} could be {which}{more}; name one", width)
    return _about_origin(report, meant[0], names, width)


def is_message(report: Report, item: str) -> bool:
    """Whether `item` is the number of a message."""
    return item.removeprefix("#") in {str(index) for index in range(len(report.messages))}


def origins_meant(report: Report, item: str, *, names: Mapping[str, str] = NO_NAMES) -> list[str]:
    """The origins in the report that `item` can mean; one where it is clear."""
    origins = _origins(report)
    if item in origins:
        return [item]
    by_key = next((origin for origin in origins if origin.partition(":")[2] == item), None)
    if by_key is not None:
        return [by_key]
    return [origin for origin in origins_called(item, names) if origin in origins]


def origins_called(wanted: str, names: Mapping[str, str]) -> list[str]:
    """The origins of the entries that `wanted` names: a name, `book#name` or `book/name`."""
    folded = wanted.removeprefix("lore:").casefold()
    return [origin for origin, name in names.items() if folded in _spellings(origin, name)]


def _spellings(origin: str, name: str) -> tuple[str, ...]:
    book = origin.removeprefix("lore:").rpartition("#")[0].casefold()
    called = name.casefold()
    return called, f"{book}#{called}", f"{book}/{called}"


def _titled(origin: str, names: Mapping[str, str]) -> str:
    return visible(f"{origin} ({names[origin]})" if names.get(origin) else origin)


def _about_origin(report: Report, origin: str, names: Mapping[str, str], width: int) -> list[str]:
    lines = [clipped(_titled(origin, names), width)]
    for verdict in about(report.verdicts, origin):
        lines += indented(_in_words(verdict), width)
    if origin in report.by_origin:
        lines += indented(f"costs {report.by_origin[origin]} tokens of {report.limit}", width)
    for index, part, text in _stands(report, origin):
        at = f"characters {part.start} to {part.end}"
        lines += indented(f"stands in message {index}, {at}:", width)
        lines += [f"    | {line}" for line in wrapped(text, width - 6)]
    return lines


def _about_message(report: Report, index: int, width: int) -> list[str]:
    message = report.messages[index]
    injected = ", injected by depth" if message.injected else ""
    speaker = f", said by {message.name}" if message.name else ""
    head = f"message {index}: block {message.block}{injected}, role {message.role}{speaker},"
    lines = wrapped(f"{head} {message.tokens} tokens", width)
    for part in message.parts:
        lines += indented(f"characters {part.start} to {part.end} are {part.origin}", width)
    return lines + [f"    | {line}" for line in wrapped(message.content, width - 6)]


def _none_called(report: Report, item: str, names: Mapping[str, str], width: int) -> list[str]:
    if re.fullmatch(r"#?-?[0-9]+", item):
        last = len(report.messages) - 1
        return wrapped(f"there is no message {clipped(item, 20)}; they are 0 to {last}", width)
    origins = _origins(report)
    known = {names[origin]: origin for origin in origins if origin in names}
    known |= {key: origin for origin in origins for key in (origin, origin.partition(":")[2])}
    compared = list(islice(known, _MOST_COMPARED))
    near = [known[key] for key in get_close_matches(item[:60], compared, n=6, cutoff=0.4)]
    listed = [_titled(origin, names) for origin in dict.fromkeys(near or islice(origins, 12))]
    there = "near it are" if near else "there are"
    called = clipped(visible(item), 60)
    return wrapped(f"nothing here is called {called}; {there}: {', '.join(listed)}", width)


def _origins(report: Report) -> dict[str, None]:
    """Everything the report can tell about, in the order it was judged."""
    judged = [verdict.item for verdict in report.verdicts]
    placed = [part.origin for message in report.messages for part in message.parts]
    return dict.fromkeys([*judged, *report.by_origin, *placed])


def _stands(report: Report, origin: str) -> Iterator[tuple[int, Part, str]]:
    for index, message in enumerate(report.messages):
        for part in message.parts:
            if part.origin == origin != "history":
                yield index, part, message.content[part.start : part.end]


def _in_words(verdict: Verdict) -> str:
    decided = "kept" if verdict.kept else "left out"
    cause = f" ({verdict.cause})" if verdict.cause and verdict.cause not in verdict.reason else ""
    cost = f", {verdict.tokens} tokens" if verdict.tokens else ""
    return f"{STAGES[verdict.stage]}: {decided}: {verdict.reason}{cause}{cost}"
