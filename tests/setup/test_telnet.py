"""Test the small telnet client: it answers options and passes text through."""

from server.telnet import DO, DONT, IAC, MXP, NAWS, SB, SE, WILL, WONT, Negotiation, plain


def test_plain_text_passes_unchanged():
    assert Negotiation().read("a ferry, é".encode()) == ("a ferry, é", b"")


def test_character_split_between_packets_arrives_whole():
    negotiation = Negotiation()
    halves = "é".encode()

    assert negotiation.read(halves[:1])[0] + negotiation.read(halves[1:])[0] == "é"


def test_option_split_between_packets_is_answered_once():
    negotiation = Negotiation()

    assert negotiation.read(b"a" + bytes([IAC, DO])) == ("a", b"")
    assert negotiation.read(bytes([86]) + b"b") == ("b", bytes([IAC, WONT, 86]))


def test_window_is_so_tall_that_nothing_is_paged():
    _, answer = Negotiation().read(bytes([IAC, DO, NAWS]))

    assert answer.startswith(bytes([IAC, WILL, NAWS, IAC, SB, NAWS]))
    assert answer.endswith(bytes([IAC, SE]))
    assert int.from_bytes(answer[8:10], "big") >= 10_000


def test_subnegotiation_is_not_shown_as_text():
    packet = b"a" + bytes([IAC, SB, 86, 1, 2, IAC, SE]) + b"b"

    assert Negotiation().read(packet) == ("ab", b"")


def test_colours_and_control_characters_are_removed():
    assert plain("\x1b[1m\x1b[31mOren\x1b[0m says\x07\r\nyes\n\r") == "Oren says\nyes\n"


def test_client_accepts_the_servers_offer_of_links_only_when_asked_for_links():
    offer = bytes([IAC, WILL, MXP])

    assert Negotiation(links=True).read(offer) == ("", bytes([IAC, DO, MXP]))
    assert Negotiation().read(offer) == ("", bytes([IAC, DONT, MXP]))
