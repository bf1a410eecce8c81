"""Lints of lorebooks: problems that can be found without a conversation.

Examples are entries that nothing can activate, contradicting flags, keys that match too often, and
texts that do not fit. Keys are searched with the engine's own index. A lint of a book takes about
as long as reading it once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.foreign.documents import is_loss, one_line
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import IN_HISTORY, LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules, ClockName
from evennia_ai.engine.lorebook.scan.key_index import ALWAYS, NEVER
from evennia_ai.engine.prompt.prefix_rules import describe_dependence
from evennia_ai.engine.prompt.templates.unknown import unknown_macros
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.engine.text.normal_form import normal_form
from evennia_ai.engine.text.words import is_in_word
from evennia_ai.formats.lorebooks.editing.lint_evidence import Evidence, gather_evidence
from evennia_ai.formats.lorebooks.editing.without_effect import (
    entry_texts,
    list_idle_fields,
    list_wanted_extensions,
)

_NO_RULES: Final = ActivationRules()
_SHOWN_KEYS: Final = 3
_SHORT_LETTERS: Final = 2
# Durations without any effect, because they end before the NPC speaks again: one turn, two messages
# (the NPC's answer and the next line), or no seconds.
_NEVER_SEEN: Final[dict[ClockName, int]] = {"turns": 1, "messages": 2, "seconds": 0}

EVERYDAY_WORDS: Final = frozenset(
    """
    a about after again all also always am an and another any are around as ask at away bad be
    because before begin believe best better book books bring but buy by call came can care
    careful carry change come cost costs could day days did dinner do does done door down drink
    each eat eats end enough evening ever every eye eyes face far fast father feel few find fine
    first food for found friend friends from gave get give glad go going gone good great had hand
    hands happy hard has have he head hear heard hello help her here him his home hope house how
    hungry hurry i idea if in inside into is it job joke just keep kind know known large last late
    later laugh leave leaving left less let letter letters life light like listen little live long
    look looking lost lot love made make man many maybe me mean meet mind mine minute money more
    morning most mother move much must my name near need never new news next nice night no noise
    not nothing now of off often oh old on once one only open or other our out over own pay pays
    people person place places play please price prices question quick quiet quite read ready
    really remember rest right room run said same saw say says see seen sell sent she should show
    silence since sit sleep slow small so some somebody someone something soon sorry sound speak
    stand start stay steps still stop story such sure take talk tell than thank thanks that the
    their them then there these they thing things think this those though time times to today
    together tomorrow tonight too town truth try two under until up us use very wait walk want
    warm was watch water way we welcome well were what when where which while who why will wish
    with without woman wonder word words work works world worry would write wrong year years yes
    yesterday yet you young your yours
    """.split()  # noqa: SIM905 - as a list these words would need three pages
)
"""Words that people say in most conversations in English, whatever the conversation is about."""

_ERRORS: Final = frozenset({"unreachable", "regex", "level", "weight"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BookFinding:
    """A problem that a lint found in a lorebook."""

    uid: str
    """The id of the entry, "" if the problem concerns the whole book."""
    kind: str
    text: str
    """A description of the problem, and what to do about it."""

    @property
    def is_error(self) -> bool:
        """True if some data of the book is lost or can never have an effect."""
        return self.kind in _ERRORS or (self.kind == "notice" and is_loss(self.text))

    def __str__(self) -> str:
        return f"entry {self.uid}: {self.text}" if self.uid else self.text


def lint_book(
    book: Lorebook,
    *,
    rules: ActivationRules = _NO_RULES,
    limit_tokens: int | None = None,
    counter: TokenCounter = ESTIMATE,
    outlets: Collection[str] = (),
    source: Any = None,
) -> tuple[BookFinding, ...]:
    """Return the problems of a lorebook: first those of the whole book, then those by entry.

    For a refused entry, only the notice on reading it is returned.

    Args:
        limit_tokens: the size of a prompt, None if unknown.
        outlets: the names of outlets that a component shows.
        source: the JSON value of the book, to find members that nothing reads.
    """
    evidence = gather_evidence(book, rules=rules, limit_tokens=limit_tokens, counter=counter)
    enabled = [entry for entry in book.entries if entry.enabled and not entry.refused]
    found = [BookFinding(uid="", kind="notice", text=one_line(notice)) for notice in book.notices]
    found += [BookFinding(uid="", kind="no_effect", text=text) for text in list_idle_fields(source)]
    asked = list_wanted_extensions(entry_texts(source))
    found += [BookFinding(uid="", kind="extension", text=text) for text in asked]
    found += _lint_budget(evidence)
    found += _lint_outlets(enabled, frozenset(outlets))
    doubles = _find_duplicates(enabled)
    for entry in enabled:
        found += [
            BookFinding(uid=entry.uid, kind=kind, text=text)
            for check in _CHECKS
            for kind, text in check(entry, evidence)
        ]
        if entry.index in doubles:
            text = f"has the keys and the text of entry {doubles[entry.index]}; remove one of them"
            found.append(BookFinding(uid=entry.uid, kind="double", text=text))
    return tuple(found)


Finding = tuple[str, str]
LintCheck = Callable[[LoreEntry, Evidence], Iterator[Finding]]


def _lint_budget(evidence: Evidence) -> Iterator[BookFinding]:
    """Yield a finding if the texts of a book exceed its token budget."""
    budget = evidence.budget
    if budget is None:
        return
    entries = [entry for entry in evidence.book.entries if entry.is_usable]
    constants = sum(evidence.tokens[entry.index] for entry in entries if entry.constant)
    total = sum(evidence.tokens[entry.index] for entry in entries)
    if constants > budget:
        text = f"its constant entries have {constants} tokens and its budget is {budget}: some are"
        text += " always left out; make fewer constant, or raise the budget"
        yield BookFinding(uid="", kind="budget", text=text)
    elif total > budget:
        text = f"its entries have {total} tokens and its budget is {budget}: if many are active,"
        text += " those of low priority are left out; check the priorities, or raise the budget"
        yield BookFinding(uid="", kind="budget", text=text)


def _lint_outlets(entries: Iterable[LoreEntry], known: frozenset[str]) -> Iterator[BookFinding]:
    """Yield a finding for each outlet that no known component shows."""
    first = {e.outlet: e for e in reversed(list(entries)) if e.position == "outlet"}
    for name in sorted(first.keys() - known):
        shown = f"the outlet '{one_line(name)[:60]}', which no component here shows"
        text = f"is in {shown}; write {{{{outlet::NAME}}}} into a component, or move it"
        if not name:
            text = "is in an outlet without a name; name it, or move the entry"
        yield BookFinding(uid=first[name].uid, kind="outlet", text=text)


def _find_duplicates(entries: Iterable[LoreEntry]) -> dict[int, str]:
    """Return a dict from the index of each duplicate entry to the id of the entry it repeats."""
    seen: dict[tuple[frozenset[str], str], str] = {}
    doubles: dict[int, str] = {}
    for entry in entries:
        keys = frozenset(normal_form(key).strip().casefold() for key in entry.keys)
        said = (keys, entry.template.source.strip())
        if said[1] and said in seen:
            doubles[entry.index] = seen[said]
        seen.setdefault(said, entry.uid)
    return doubles


def _lint_reachability(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding, with the reason, if nothing can activate the entry."""
    gates, keys = entry.gates, evidence.entry_keys[entry.index]
    if gates.forbidden and not gates.forced:
        yield "unreachable", "is never active: @@dont_activate; remove the line or disable it"
    elif not _needs_no_key(entry) and not _findable(keys.primary):
        yield from _lint_missing_keys(entry, bool(keys.refused))
    elif clash := _describe_key_clash(entry, evidence):
        yield "unreachable", clash


def _needs_no_key(entry: LoreEntry) -> bool:
    return entry.constant or entry.gates.forced


def _findable(numbers: Iterable[int]) -> set[int]:
    """Return those keys, given by their numbers in the key index, that can match some text."""
    return {number for number in numbers if number != NEVER}


def _lint_missing_keys(entry: LoreEntry, has_refused_keys: bool) -> Iterator[Finding]:
    """Yield a finding if the entry has no keys, only blank keys, or only refused ones."""
    advice = "give it keys, make it constant, or disable it"
    if not entry.keys:
        yield "unreachable", f"has no keys and is not constant, so nothing activates it; {advice}"
    elif all(not key.strip() for key in entry.keys):
        yield "unreachable", f"has only blank keys, so nothing activates it; {advice}"
    elif has_refused_keys:
        yield "unreachable", f"none of its keys can be found, so nothing activates it; {advice}"


def _describe_key_clash(entry: LoreEntry, evidence: Evidence) -> str:
    """Return a sentence on keys that an entry both requires and excludes, "" if none."""
    keys = evidence.entry_keys[entry.index]
    excluded = set(keys.excluded)
    if any(line and _findable(line) <= excluded for line in keys.additional):
        return (
            "@@exclude_keys has all keys of a line of @@additional_keys;"
            " remove them from one of the two"
        )
    if _needs_no_key(entry):
        return ""
    primary = _findable(keys.primary)
    if primary <= excluded:
        return "@@exclude_keys has all keys of the entry; remove them from one of the two"
    if entry.logic == "not_any" and entry.selective and primary <= set(keys.secondary):
        return "its secondary keys (NOT ANY) have all keys of the entry; change one of the two"
    return ""


def _lint_recursion(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding, with the reason, if an entry waits for recursion that cannot happen."""
    level = entry.recursion.delay_level
    if not level or entry.gates.forced:
        return
    if entry.recursion.excluded:
        text = f"has delay level {level} and is excluded from recursion, so it is never active"
        yield "recursion", f"{text}; remove one of the two"
    elif not evidence.recurses and not evidence.walks_levels:
        text = f"has delay level {level}, and recursion is off for this book"
        yield "level", f"{text}; turn recursion on, or remove the delay level"
    elif not evidence.passes_on(entry.index) and not evidence.walks_levels:
        text = f"has delay level {level}, and recursion searches no text of another entry"
        yield "level", f"{text}; remove the delay level"
    elif evidence.rank(level) >= evidence.reached_levels:
        text = f"delay level {level} is number {evidence.rank(level) + 1} of the book's levels"
        text += f", and recursion reaches only {evidence.reached_levels}"
        yield "level", f"{text}; use lower levels, or raise max_recursion_steps"
    elif not _needs_no_key(entry) and evidence.is_unfed(entry.index):
        text = f"has delay level {level}, and no other entry's text has one of its keys"
        yield "level", f"{text}; write a key into a text that should activate it"


def _lint_scan_depth(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the scan depth of an entry is 0, so that no message is searched."""
    depth = evidence.scan_depth if entry.scan_depth is None else entry.scan_depth
    widens = entry.scan_depth is None and evidence.rules.min_activations
    needs_no_text = _needs_no_key(entry) or ALWAYS in evidence.entry_keys[entry.index].primary
    if depth > 0 or widens or needs_no_text or entry.sources or not entry.keys:
        return
    advice = "set it to 1 or more, or make the entry constant"
    if not evidence.recurses or entry.recursion.excluded or evidence.is_blind:
        yield "unreachable", f"has scan depth 0, so its keys are never searched; {advice}"
    elif evidence.is_unfed(entry.index):
        text = "has scan depth 0 and no other entry's text has one of its keys"
        yield "scan_depth", f"{text}, so nothing activates it; {advice}"
    else:
        text = "has scan depth 0: only texts of other entries activate it, never the conversation"
        yield "scan_depth", f"{text}; {advice} if that is not meant"


def _lint_keys(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings on keys that are invalid, match too often, or have no effect."""
    for problem in evidence.refusals(entry):
        yield "regex", problem
    common = list(_describe_common_keys(entry, evidence))
    if common:
        more = f" and {len(common) - _SHOWN_KEYS} more" if len(common) > _SHOWN_KEYS else ""
        text = "; ".join(common[:_SHOWN_KEYS]) + more
        text += ": it will activate the entry most of the time"
        yield "common_key", f"{text}; use a longer or rarer key"
    if entry.secondary_keys and not entry.selective:
        text = "has secondary keys that do not count, because it is not selective"
        yield "secondary", f"{text}; set selective, or remove them"


def _describe_common_keys(entry: LoreEntry, evidence: Evidence) -> Iterator[str]:
    keys = evidence.entry_keys[entry.index]
    if entry.constant or entry.patterns == "all":
        return
    is_narrowed = entry.selective and bool(entry.secondary_keys)
    for text, number in zip(keys.texts, keys.primary, strict=False):
        shown = f"key '{one_line(text)[:40]}'"
        if number == ALWAYS:
            yield "a blank key is found in every text"
        elif number == NEVER:
            continue
        elif len(text) <= _SHORT_LETTERS and all(c.isalpha() and is_in_word(c) for c in text):
            yield f"{shown} has {len(text)} letter{'s' * (len(text) > 1)}"
        elif not is_narrowed and normal_form(text).strip().casefold() in EVERYDAY_WORDS:
            yield f"{shown} is a word of everyday talk"
        elif spread := evidence.spread(number, entry.index):
            yield f"{shown} is in {spread[0]} of the {spread[1]} other entries"
        elif evidence.is_frequent(text):
            yield f"{shown} is one of the most frequent words of the book"


def _lint_chances(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield findings on an entry's chance, groups and timers that have no effect."""
    if entry.chance <= 0:
        yield "chance", "has a chance of 0 %, so it is never active; raise it or disable the entry"
    for name in dict.fromkeys(entry.grouping.names):
        if evidence.members[name] == 1:
            text = f"is the only one in group '{one_line(name)[:60]}'"
            yield "group", f"{text}; a group has an effect only with two or more entries"
    grouping = entry.grouping
    if grouping.names and grouping.weight <= 0 and not grouping.preferred:
        yield "weight", "has group weight 0, so it never wins against others; give it a weight"
    timing = entry.timing
    clock = timing.clock or evidence.rules.clock
    for name, count in (("sticky", timing.sticky), ("cooldown", timing.cooldown)):
        is_after_sticky = name == "cooldown" and timing.sticky
        if 0 < count <= _NEVER_SEEN[clock] and not is_after_sticky:
            text = f"{name} {count} on the clock of {clock} is over before the NPC speaks again"
            yield "timing", f"{text}; use {_NEVER_SEEN[clock] + 1} or more"


def _lint_text(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if an entry's content is missing or can never fit into the budget."""
    tokens, budget = evidence.tokens[entry.index], evidence.budget
    if not entry.template.source.strip():
        yield "content", "has no content, so it adds nothing; write some, or disable it"
    elif budget is not None and tokens > budget and not entry.ignore_budget:
        text = f"has {tokens} tokens and the budget is {budget}, so it never fits"
        yield "budget", f"{text}; shorten it, or raise the budget"


def _lint_macros(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each unknown macro in the entry's text."""
    for macro in unknown_macros(entry.template.source):
        yield "macro", f"{one_line(macro)} is an unknown macro and is sent as written"


def _lint_place(entry: LoreEntry, evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the entry is placed before the history and changes with every message.

    Each change invalidates the prompt cache.
    """
    if sentence := describe_changing_entry(entry):
        yield "unsettled", f"{sentence}; give it a depth to keep it in the history"


def describe_changing_entry(entry: LoreEntry) -> str:
    """Return a sentence if the entry is placed before the history and changes with every message.

    Return "" otherwise. Outlets count as before the history, because a component there may show
    them.
    """
    if entry.position in IN_HISTORY:
        return ""
    return describe_dependence(entry.template.source)


_CHECKS: Final[tuple[LintCheck, ...]] = (
    *(
        _lint_reachability,
        _lint_recursion,
        _lint_scan_depth,
        _lint_keys,
        _lint_chances,
        _lint_text,
        _lint_macros,
        _lint_place,
    ),
)
