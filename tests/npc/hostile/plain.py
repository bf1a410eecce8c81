"""Check that text for a client is plain, without use of Evennia."""

import unicodedata

UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\uffa0")
JOINERS = "\u200c\u200d"
MOST_MARKS = 8


def assert_plain(line: str) -> None:
    """Fail if a text has control or invisible characters, or many combining marks."""
    for letter in line:
        unseen = unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Co", "Cn")
        assert letter in "\n" + JOINERS or not unseen, (ascii(letter), ascii(line[:300]))
        assert letter not in UNSEEN, ascii(line[:300])
        assert not "\U000e0100" <= letter <= "\U000e01ef", ascii(line[:300])
    marks = 0
    for letter in line:
        marks = marks + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        assert marks <= MOST_MARKS, ascii(line[:300])
