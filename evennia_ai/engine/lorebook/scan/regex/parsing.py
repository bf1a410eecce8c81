"""The parser of JavaScript's regular expressions (ECMAScript standard, with annex B).

Without the flag `u`, a backslash before almost any character means that character. With `u`, only
characters with a special meaning may follow a backslash.

If a pattern uses something unsupported, the parser records that and parses the rest. If it then
finds a syntax error, it reports the error, because such a text is no regular expression at all.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import (
    ANY,
    BLANKS,
    DIGITS,
    LAST,
    NO_LINE_END,
    WORDS,
    CharSet,
    merge_ranges,
    other_ranges,
    property_of,
    single_char,
    with_case_variants,
)
from evennia_ai.engine.lorebook.scan.regex.tree import (
    EMPTY,
    Backreference,
    Chain,
    Chars,
    Choice,
    Group,
    LineAnchor,
    Lookaround,
    Node,
    Repeat,
    WordBoundary,
    child_nodes,
    walk_nodes,
)
from evennia_ai.engine.lorebook.scan.regex.units import to_utf16_units

MOST_CHARACTERS: Final = 1000
MOST_REPEATS: Final = 1000
MOST_NESTED: Final = 40
MOST_RANGES: Final = 3000
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of a regular expression that change what it matches. `u` and `v` set `unicode`."""

    ignore_case: bool = False
    multiline: bool = False
    dot_all: bool = False
    unicode: bool = False
    sets: bool = False
    sticky: bool = False

    def chars(self, chars: CharSet) -> CharSet:
        """Return the characters that match under these flags, such as both cases of a letter."""
        return with_case_variants(chars, unicode=self.unicode) if self.ignore_case else chars


def parse_flags(letters: str) -> Flags:
    """Parse the flags after the second slash of `/body/flags`.

    Raises:
        BrokenPatternError: The flags are invalid.
    """
    if len(set(letters)) < len(letters):
        raise BrokenPatternError("a flag occurs twice")
    if "u" in letters and "v" in letters:
        raise BrokenPatternError("the flags u and v exclude each other")
    return Flags(
        ignore_case="i" in letters,
        multiline="m" in letters,
        dot_all="s" in letters,
        unicode="u" in letters or "v" in letters,
        sets="v" in letters,
        sticky="y" in letters,
    )


def parse_pattern(body: str, flags: Flags) -> Node:
    """Parse a regular expression into a syntax tree.

    Raises:
        BrokenPatternError: It is no valid JavaScript.
        UnsupportedPatternError: It is valid, but this package cannot run it.
    """
    if len(body) > MOST_CHARACTERS:
        raise UnsupportedPatternError(f"longer than {MOST_CHARACTERS:,} characters")
    return _Parser(body if flags.unicode else to_utf16_units(body), flags).pattern()


def find_groups(body: str, flags: Flags) -> tuple[int, Mapping[str, int]]:
    """Return how many groups a regular expression has, and the number of each named group.

    Raises:
        BrokenPatternError: The name of a group is invalid.
    """
    parser = _Parser(body if flags.unicode else to_utf16_units(body), flags)
    parser.survey_groups()
    return parser.groups, parser.names


def _length(node: Node) -> int:
    """Return the length of a node in characters, as if its repetitions were written out.

    A repetition without a maximum counts with its minimum. An empty node counts as one character.
    The memory that a regex engine needs grows with this length.
    """
    lengths = [_length(one) for one in child_nodes(node)]
    match node:
        case Choice():
            return max(lengths)
        case Repeat(least=least, most=most):
            return lengths[0] * max(1, least if most is None else most)
        case _:
            return max(1, sum(lengths))


# Matches what counting groups must look at: opening parentheses, and escapes and classes, in which
# a parenthesis opens no group.
_PIECES: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\((?:\?<(?![=!]))?", re.DOTALL)
_COUNTS: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_SHORT_COUNTS: Final[Mapping[str, tuple[int, int | None]]] = {
    "*": (0, None),
    "+": (1, None),
    "?": (0, 1),
}
# For the start of each lookaround: whether it is a lookbehind, and whether it is negative.
_LOOKS: Final[Mapping[str, tuple[bool, bool]]] = {
    "?=": (False, False),
    "?!": (False, True),
    "?<=": (True, False),
    "?<!": (True, True),
}
_MODIFIERS: Final = {"i": "ignore_case", "m": "multiline", "s": "dot_all"}

_NAMED_SETS: Final = {"d": DIGITS, "w": WORDS, "s": BLANKS}
_CONTROLS: Final[Mapping[str, int]] = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SYNTAX_CHARACTERS: Final = frozenset("^$\\.*+?()[]{}|/")
_BACKSPACE: Final = 8
_DECIMAL_DIGITS: Final = frozenset("0123456789")
_GROUP_NUMBER: Final = re.compile(r"[1-9][0-9]*")
_CONTROL_LETTER: Final = re.compile(r"[a-zA-Z]")
_CONTROL_IN_CLASS: Final = re.compile(r"[a-zA-Z0-9_]")
_OCTAL: Final = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?")
_TWO_HEX: Final = re.compile(r"[0-9a-fA-F]{2}")
_FOUR_HEX: Final = re.compile(r"[0-9a-fA-F]{4}")
_CODE_POINT: Final = re.compile(r"0*([0-9a-fA-F]{1,6})\}")
_LOW_SURROGATE: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")

# Characters, alone or doubled, that have a special meaning in a character class with the flag `v`.
_SET_SIGNS: Final = frozenset("()[{}/|-")
_SET_PAIRS: Final = frozenset("&!#$%*+,.:;<=>?@^`~")


class _Parser:
    """A parser of one regular expression. Most of its methods are rules of the grammar."""

    __slots__ = ("_at", "_depth", "_flags", "_opened", "_refused", "_text", "groups", "names")

    def __init__(self, text: str, flags: Flags) -> None:
        self._text = text
        self._flags = flags
        self._at = 0
        self._depth = 0
        self._opened = 0  # the number of groups opened so far
        self.names: dict[str, int] = {}
        self.groups = 0  # the number of groups in the whole pattern, counted in advance
        self._refused = ""  # the first unsupported thing in the pattern

    # Reading of the text

    def _peek(self) -> str:
        """Return the next character of the regular expression, or "" at its end."""
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        """Consume the next character and return it."""
        if self._at >= len(self._text):
            raise self._broken("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, wanted: str) -> bool:
        """Consume the text `wanted` and return True, if this text comes next."""
        if not self._text.startswith(wanted, self._at):
            return False
        self._at += len(wanted)
        return True

    def _take_match(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        """Consume and return the text that `wanted` matches next; None if it does not match."""
        found = wanted.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _broken(self, what: str) -> BrokenPatternError:
        return BrokenPatternError(f"{what} at character {self._at + 1}")

    def _refuse(self, what: str) -> None:
        self._refused = self._refused or what

    # The rules of the grammar

    def pattern(self) -> Node:
        """Parse the whole regular expression into a syntax tree."""
        self.survey_groups()
        tree = self._choice()
        if self._peek():
            raise self._broken("a ) without an opening (")
        if _length(tree) > MOST_REPEATS:
            self._refuse(f"nested repetitions of more than {MOST_REPEATS:,}")
        sets = [node.chars for node in walk_nodes(tree) if isinstance(node, Chars)]
        if sum(len(chars.ranges) for chars in sets) > MOST_RANGES:
            self._refuse(f"classes of more than {MOST_RANGES:,} ranges of characters")
        if self._refused:
            raise UnsupportedPatternError(self._refused)
        return Chain(parts=(LineAnchor(place="start"), tree)) if self._flags.sticky else tree

    def survey_groups(self) -> None:
        """Count and name all groups first, because `\\1` and `\\k` may refer to later ones."""
        for piece in _PIECES.finditer(self._text):
            if piece[0] == "(" and self._text[piece.end() : piece.end() + 1] != "?":
                self.groups += 1
            if piece[0] == "(?<":
                self.groups += 1
                self._at = piece.end()
                name = self._group_name()
                if name in self.names:
                    raise BrokenPatternError(f"two groups with the name {name!r}")
                self.names[name] = self.groups
        self._at = 0

    def _group_name(self) -> str:
        """Parse the name of a group, and the closing angle bracket."""
        end = self._text.find(">", self._at)
        name = self._text[self._at : max(end, self._at)]
        if len(name) > _LONGEST_NAME or not name.replace("$", "_").isidentifier():
            raise self._broken("a group with an invalid name")
        self._at = end + 1
        return name

    def _choice(self) -> Node:
        """Parse alternatives separated by `|`."""
        options = [self._chain()]
        while self._take("|"):
            options.append(self._chain())
        return options[0] if len(options) == 1 else Choice(options=tuple(options))

    def _chain(self) -> Node:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Chain(parts=tuple(parts))

    def _term(self) -> Node:
        if self._take("^"):
            return LineAnchor(place="line_start" if self._flags.multiline else "start")
        if self._take("$"):
            return LineAnchor(place="line_end" if self._flags.multiline else "end")
        for written, negated in (("\\b", False), ("\\B", True)):
            if self._take(written):
                words = CharSet(ranges=WORDS)
                words = self._flags.chars(words) if self._flags.unicode else words
                return WordBoundary(words=words, negated=negated)
        node = self._atom()
        if isinstance(node, Lookaround) and (node.behind or self._flags.unicode):
            return node
        return self._repeated(node)

    def _repeated(self, node: Node) -> Node:
        """Parse the quantifier after a node, if there is one, and return the repeated node."""
        begin = self._at
        counts = self._counts()
        if counts is None:
            return node
        least, most = counts
        if most is not None and least > most:
            self._at = begin
            raise self._broken("a repetition with its counts in the wrong order")
        if max(least, most or 0) > MOST_REPEATS:
            self._refuse(f"a repetition count above {MOST_REPEATS:,}")
        lazy = self._take("?")
        # Annex B allows a repetition of a lookahead. A lookahead consumes nothing, so matching it
        # several times gives the same as matching it once.
        if isinstance(node, Lookaround):
            return node if least else EMPTY
        return Repeat(body=node, least=least, most=most, lazy=lazy)

    def _counts(self) -> tuple[int, int | None] | None:
        """Parse `*`, `+`, `?` or `{2,5}` if it is next; return the minimum and maximum."""
        for written, counts in _SHORT_COUNTS.items():
            if self._take(written):
                return counts
        found = self._take_match(_COUNTS)
        if found is None:
            return None
        least, most = (int((digits or "").lstrip("0")[:9] or "0") for digits in found.group(1, 3))
        if found[2] is None:
            return least, least
        return least, (most if found[3] else None)

    def _atom(self) -> Node:
        char = self._next()
        match char:
            case "(":
                return self._parenthesis()
            case "[":
                return Chars(chars=self._class())
            case ".":
                return Chars(chars=ANY if self._flags.dot_all else NO_LINE_END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                self._at -= 1
                raise self._broken("nothing to repeat")
            case "{" | "}" | "]":  # an ordinary character without `u`, unless it begins a count
                self._at -= 1
                if self._flags.unicode or _COUNTS.match(self._text, self._at):
                    raise self._broken(f"a {char} that repeats nothing")
                self._at += 1
        return Chars(chars=self._flags.chars(single_char(ord(char))))

    def _parenthesis(self) -> Node:
        """Parse a lookaround or a group, after its opening parenthesis."""
        for written, (behind, negative) in _LOOKS.items():
            if self._take(written):
                return Lookaround(body=self._inside(self._flags), behind=behind, negative=negative)
        if self._take("?<"):
            self._group_name()
        elif self._take("?"):
            body = self._inside(self._modified_flags())
            return Chain(parts=(body,)) if isinstance(body, Lookaround) else body
        self._opened += 1
        number = self._opened
        return Group(number=number, body=self._inside(self._flags))

    def _modified_flags(self) -> Flags:
        """Parse `:`, `i:` or `i-m:`, and return the flags that apply after it."""
        end = self._text.find(":", self._at)
        on, dash, off = self._text[self._at : max(end, self._at)].partition("-")
        both = on + off
        if end < 0 or len(set(both)) < len(both) or not set(both) <= _MODIFIERS.keys():
            raise self._broken("an unknown kind of group")
        if dash and not both:
            raise self._broken("a hyphen without flags")
        self._at = end + 1
        changed = dict.fromkeys(on, True) | dict.fromkeys(off, False)
        return replace(self._flags, **{_MODIFIERS[name]: state for name, state in changed.items()})

    def _inside(self, flags: Flags) -> Node:
        """Parse the content of parentheses under these flags, and the closing parenthesis."""
        if self._depth == MOST_NESTED:
            raise UnsupportedPatternError(f"more than {MOST_NESTED} nested groups")
        outer, self._flags = self._flags, flags
        self._depth += 1
        body = self._choice()
        self._depth -= 1
        self._flags = outer
        if not self._take(")"):
            raise self._broken("a ( that is never closed")
        return body

    # Escapes: the text after a backslash

    def _escape(self) -> Node:
        """Parse an escape outside a character class."""
        number = self._group_number()
        if number is not None:
            return Backreference(number=number, folded=self._flags.ignore_case)
        chars = self._set_escape()
        if chars is None:
            chars = single_char(self._char_escape(in_class=False))
        return Chars(chars=self._flags.chars(chars))

    def _group_number(self) -> int | None:
        """Parse `1` or `k<name>` and return the number of the group; None if neither comes next."""
        if self.names or self._flags.unicode:
            if self._take("k<"):
                name = self._group_name()
                if name not in self.names:
                    raise self._broken(f"no group with the name {name!r}")
                return self.names[name]
            if self._peek() == "k":
                raise self._broken("\\k needs the name of a group")
        digits = _GROUP_NUMBER.match(self._text, self._at)
        if digits is None or int(digits[0][:9]) > self.groups:
            return None
        self._at = digits.end()
        return int(digits[0])

    def _set_escape(self) -> CharSet | None:
        """Parse `d`, `p{Lu}` or another named set and return it; None if there is none."""
        letter = self._peek()
        if letter.lower() in _NAMED_SETS:
            self._at += 1
            ranges = _NAMED_SETS[letter.lower()]
            if letter in "wW" and self._flags.unicode:
                ranges = self._flags.chars(CharSet(ranges=ranges)).ranges
            return CharSet(ranges=ranges if letter.islower() else other_ranges(ranges))
        if letter in ("p", "P") and self._flags.unicode:
            self._at += 1
            return self._property(negated=letter == "P")
        return None

    def _property(self, *, negated: bool) -> CharSet:
        """Parse the name of a Unicode property in braces, and return its characters."""
        end = self._text.find("}", self._at)
        if self._peek() != "{" or end < 0:
            raise self._broken("\\p needs a name in braces")
        name = self._text[self._at + 1 : end]
        found = property_of(name, negated=negated)
        if found is None:
            raise self._broken(f"unknown property {name[:40]!r}")
        self._at = end + 1
        if isinstance(found, tuple):
            return CharSet(ranges=found)
        if self._flags.ignore_case and not found.category and "=" not in found.name:
            self._refuse(f"the property {name} with the flag i")
        if self._flags.ignore_case and self._flags.sets and negated:
            self._refuse("\\P with the flags i and v")
        return CharSet(properties=(found,))

    def _char_escape(self, *, in_class: bool) -> int:
        """Parse the escape of one character and return its code point."""
        letter = self._next()
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "c":
            return self._control_escape(in_class=in_class)
        if letter in _DECIMAL_DIGITS:
            return self._octal_escape(letter)
        if letter == "x" and (digits := self._take_match(_TWO_HEX)):
            return int(digits[0], 16)
        if letter == "u" and (code := self._unicode_escape()) is not None:
            return code
        may_be_escaped = letter in _SYNTAX_CHARACTERS or (in_class and letter == "-")
        if self._flags.unicode and not may_be_escaped:
            self._at -= 1
            raise self._broken(f"a backslash before {letter!r}, which the flag u forbids,")
        if letter == "k" and self.names:
            raise self._broken("\\k needs the name of a group")
        return ord(letter)

    def _control_escape(self, *, in_class: bool) -> int:
        """Parse the letter after `\\c` and return the code point of the control character."""
        lenient = in_class and not self._flags.unicode
        letter = self._take_match(_CONTROL_IN_CLASS if lenient else _CONTROL_LETTER)
        if letter is not None:
            return ord(letter[0]) % 32
        if self._flags.unicode:
            raise self._broken("\\c needs a letter")
        self._at -= 1  # here the backslash is an ordinary character, so the `c` is parsed next
        return ord("\\")

    def _octal_escape(self, digit: str) -> int:
        """Parse an octal number whose first digit was already consumed."""
        if self._flags.unicode and (digit != "0" or self._peek() in _DECIMAL_DIGITS):
            raise self._broken("a backreference to a missing group")
        self._at -= 1
        octal = self._take_match(_OCTAL)
        if octal is None:  # 8 and 9 are no octal digits and mean themselves
            return ord(self._next())
        return int(octal[0], 8)

    def _unicode_escape(self) -> int | None:
        """Parse the digits after `\\u` and return the code point; None if there are no digits."""
        if self._flags.unicode and self._take("{"):
            digits = self._take_match(_CODE_POINT)
            if digits is None or int(digits[1], 16) > LAST:
                raise self._broken("\\u{} needs a code point")
            return int(digits[1], 16)
        digits = self._take_match(_FOUR_HEX)
        if digits is None:
            return None
        code = int(digits[0], 16)
        # With `u`, an escaped high surrogate before an escaped low one is one character.
        if self._flags.unicode and 0xD800 <= code < 0xDC00:
            low = self._take_match(_LOW_SURROGATE)
            if low is not None:
                return 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return code

    # Character classes: the text between square brackets

    def _class(self) -> CharSet:
        """Parse a character class, after its opening bracket."""
        negated = self._take("^")
        found: list[CharSet] = []
        while not self._take("]"):
            begin = self._at
            first = self._class_member()
            if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] == "]":
                found.append(first)
                continue
            self._at += 1
            last = self._class_member()
            low, high = _code_of(first), _code_of(last)
            if low is not None and high is not None:
                if low > high:
                    self._at = begin
                    raise self._broken("a range out of order")
                found.append(CharSet(ranges=((low, high),)))
            elif self._flags.unicode:
                raise self._broken("a range that does not go from one character to another")
            else:  # next to a set such as `\\d`, the hyphen means itself
                found += (first, single_char(ord("-")), last)
        if negated and self._flags.sets and self._flags.ignore_case:
            self._refuse("[^...] with the flags i and v")
        ranges = merge_ranges(pair for chars in found for pair in chars.ranges)
        properties = tuple(dict.fromkeys(prop for chars in found for prop in chars.properties))
        return replace(
            self._flags.chars(CharSet(ranges=ranges, properties=properties)), negated=negated
        )

    def _class_member(self) -> CharSet:
        """Parse one character or one escape in a character class."""
        char, pair = self._peek(), self._text[self._at : self._at + 2]
        if self._flags.sets and (char in _SET_SIGNS or (char in _SET_PAIRS and pair == char * 2)):
            raise UnsupportedPatternError("the set notation of the flag v")
        if not self._take("\\"):
            return single_char(ord(self._next()))
        if self._flags.sets and self._peek() == "q":
            raise UnsupportedPatternError("the notation \\q of the flag v")
        chars = self._set_escape()
        if chars is not None:
            return chars
        if self._take("b"):
            return single_char(_BACKSPACE)
        return single_char(self._char_escape(in_class=True))


def _code_of(chars: CharSet) -> int | None:
    """Return the code point of a set that has exactly one character; None for other sets."""
    if chars.properties or len(chars.ranges) != 1 or chars.ranges[0][0] != chars.ranges[0][1]:
        return None
    return chars.ranges[0][0]
