"""The points in which the rules `sillytavern` differ from SillyTavern 1.19, with their cases.

`python -m tests.conformance` prints the shares of cases that agree, and writes the table of
`Differences on purpose` into the documentation.
"""

from typing import Final, NamedTuple

VERSION: Final = "1.19.0"


class Difference(NamedTuple):
    """A point in which the package differs on purpose, and the cases that show only this point."""

    theirs: str
    ours: str
    requirement: str
    cases: tuple[str, ...]


NOBODY_SPEAKS: Final = Difference(
    theirs="drops example text without a speaker, also lore at the examples, but sends a heading",
    ours="one message without name and heading",
    requirement="S3-11 [ours]",
    cases=(
        *("example-text-only", "ra-022", "ra-027", "ra-056", "ra-076", "ra-078", "ra-100"),
        *("ra-117", "ra-129", "ra-141", "ra-142", "ra-178", "ra-179", "ra-181", "rm-003"),
        *("rm-028", "rm-040", "rm-049", "rm-061", "rm-095", "rm-118", "rm-129", "rm-132"),
    ),
)
ON_PURPOSE: Final = (
    Difference(
        theirs="drops texts deeper than 10,000, and texts deeper than a cut history",
        ours="places them at the top of the kept history",
        requirement="S3-06, S3-16",
        cases=("deepest-10001", "trim-inject-700", "rm-121"),
    ),
    NOBODY_SPEAKS,
    Difference(
        theirs="expands macros in what people said; they may set variables of the next turn",
        ours="treats what people said as data",
        requirement="S0-10",
        cases=("in-later-message",),
    ),
    Difference(
        theirs="searches a persona at a depth for keys from the second answer on",
        ours="searches a persona if an entry asks for it",
        requirement="[ours]",
        cases=("scanned-turns",),
    ),
    Difference(
        theirs="sends a lore format without `{0}` without the lore; repeats lore at each `{0}`",
        ours="does not use a format without `{0}`; the lore is sent once",
        requirement="[ours]",
        cases=("no-field", "wi-two"),
    ),
    Difference(
        theirs="sorts by an order that is a fraction",
        ours="reads it as 100, with a notice",
        requirement="[ours]",
        cases=("fractions",),
    ),
    Difference(
        theirs="fills in greetings, version and notes of a card, and numbers of messages",
        ours="does not know these macros",
        requirement="[ours]",
        cases=("card-21", "card-23", "card-empty-04", "chat-09"),
    ),
    Difference(
        theirs="no longer knows `{{charJailbreak}}`",
        ours="knows it",
        requirement="[ours]",
        cases=("card-08",),
    ),
    Difference(
        theirs="replaces `$3` of a regex script with two groups by a position or by the whole text",
        ours="replaces a group that is not there by nothing; the lint names it",
        requirement="[ours]",
        cases=(
            "scripts/find-15",
            "scripts/random-027",
            "scripts/random-045",
            "scripts/random-060",
            "scripts/random-065",
            "scripts/random-108",
            "scripts/random-122",
            "scripts/random-131",
            "scripts/random-134",
            "scripts/random-141",
            "scripts/random-149",
            "scripts/random-166",
            "scripts/random-171",
            "scripts/random-185",
            "scripts/random-186",
        ),
    ),
    Difference(
        theirs="lets names in a regular expression with raw macros act as patterns",
        ours="matches names literally",
        requirement="[ours]",
        cases=(
            "scripts/macros-1-1",
            "scripts/macros-2-1",
            "scripts/macros-3-1",
            "scripts/macros-4-1",
            "scripts/macros-5-1",
        ),
    ),
    Difference(
        theirs="expands macros in the words that a regex script has found",
        ours="inserts the words as data",
        requirement="S0-10",
        cases=(
            "scripts/macros-0-0",
            "scripts/macros-1-0",
            "scripts/macros-2-0",
            "scripts/macros-3-0",
            "scripts/macros-4-0",
            "scripts/macros-5-0",
            "scripts/macros-5-2",
            "scripts/macros-in-text",
            "scripts/macros-around-group",
        ),
    ),
)
# Cases that no scenario can express. An NPC only answers events: there are no words of a quiet
# generation, no nudge to continue, no other version of the last message, no line that is typed, and
# no group of characters. A prompt does not depend on the model, or on when something was said.
NOT_ASKED: Final = frozenset(
    (
        *("lore-continue", "lore-swipe", "injections-quiet", "rm-037", "rm-073", "rm-107"),
        *("rm-127", "group-00", "group-03", "time-33", "idle-one", "state-00", "state-01"),
        *("state-04", "state-06", "input-empty", "input-macro", "chat-05", "chat-06"),
        "chat-swipes-02",
    )
)
# Cases with another answer that is not intended.
OPEN: Final = frozenset(
    (
        # A persona at a note that is next to the main prompt: outside the lore around the note.
        "ra-194",
    )
)
# Points that no public case shows.
WITHOUT_CASE: Final = (
    Difference(
        theirs="drops injected texts if the history is switched off",
        ours="places them where the history would be",
        requirement="S3-13",
        cases=(),
    ),
    Difference(
        theirs="if not even the fixed texts fit, sends the texts that fitted so far",
        ours="leaves out texts by priority; a required text that does not fit is an error",
        requirement="S2-19",
        cases=(),
    ),
    Difference(
        theirs="finds a key only in exactly the same letters and signs",
        ours="compares keys and texts in [one form](../build/lorebook.md#keys-and-texts)",
        requirement="[ours]",
        cases=(),
    ),
)


def render_differences() -> str:
    """Return the table of the differences on purpose, as the documentation has it."""
    rows = (
        f"| {one.theirs} | {one.ours} | {len(one.cases) or '-'} | {one.requirement} |"
        for one in (*ON_PURPOSE, *WITHOUT_CASE)
    )
    head = (f"| SillyTavern {VERSION} | evennia_ai | cases | requirement |", "|---|---|---|---|")
    return "\n".join((*head, *rows))
