"""Readers that refuse a file name the kind of file that it really is."""

import json
import struct
from zlib import crc32

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.file_kinds import json_of_file, kind_of_file, kind_of_value
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.presets.reading import read_preset
from tests.formats.cards.builders import card_data
from tests.formats.chats.builders import HEADER, a_file, a_line

MILL = {"keys": ["mill"], "content": "The mill grinds."}
KINDS = [
    ({"name": "Dusk", "blur_strength": 3, "main_text_color": "#fff"}, "a SillyTavern theme"),
    ({"scriptName": "x", "findRegex": "a", "replaceString": ""}, "a SillyTavern regex script"),
    ([{"findRegex": "a", "replaceString": ""}], "SillyTavern regex scripts"),
    ({"type": "script", "name": "x", "content": "code"}, "a script of TavernHelper"),
    ({"name": "x", "input_sequence": "", "output_sequence": ""}, "a SillyTavern instruct template"),
    ({"name": "x", "story_string": ""}, "a SillyTavern context template"),
    (
        {"name": "x", "prefix": "", "suffix": "", "separator": ""},
        "a SillyTavern reasoning template",
    ),
    ({"temp": 1, "rep_pen": 1.1, "top_p": 1}, "a preset for text completion"),
    ({"temperature": 1, "repetition_penalty": 2}, "a preset for text completion"),
    ({"name": "x", "content": "You are."}, "a SillyTavern system prompt"),
    ({"version": 2, "name": "x", "qrList": []}, "a set of SillyTavern quick replies"),
    ({"power_user": {}, "username": "A"}, "the settings of SillyTavern"),
    ({"personas": {}, "persona_descriptions": {}}, "a backup of SillyTavern personas"),
    ({"api_key_openai": []}, "a file of keys"),
    ({"id": "1", "members": [], "chat_id": "1"}, "a SillyTavern group"),
    ({"movingUIState": {}}, "a SillyTavern panel layout"),
    ({"lorebookVersion": 4, "entries": []}, "a NovelAI lorebook"),
    ({"scenarioVersion": 1, "lorebook": {"entries": []}}, "a NovelAI scenario"),
    ({"storyContainerVersion": 1}, "a NovelAI story"),
    ({"kind": "memory", "entries": []}, "an Agnai memory book"),
    ({"kind": "character", "persona": {}}, "a character of Agnai"),
    ({"type": "risu", "data": []}, "a RisuAI lorebook"),
    ([{"id": "1", "keys": "mill", "entry": "The mill."}], "an AI Dungeon world"),
    ([{"keys": "mill", "value": "The mill.", "type": "place"}], "an AI Dungeon world"),
    ({"title": "x", "storyCards": []}, "an AI Dungeon world"),
    ({"worldInfo": []}, "an AI Dungeon world"),
    ({"type": "risuModule", "module": {}}, "a module of RisuAI"),
    ({"name": "x", "mainPrompt": "", "jailbreak": ""}, "a preset of RisuAI"),
    ({"kind": "preset", "name": "x"}, "a preset of Agnai or NovelAI"),
    ({"presetVersion": 3, "name": "x"}, "a preset of Agnai or NovelAI"),
    ({"instruct": {}, "context": {}, "sysprompt": {}}, "a master export of SillyTavern"),
    ({"gamestarted": True, "actions": []}, "a saved story of KoboldAI"),
    ([{"title": "x", **MILL}], "a bare list of lore entries"),
    ({"char_name": "Ida", "char_persona": "Bees."}, "a character of text-generation-webui"),
    ({"internal": [], "visible": []}, "a chat of text-generation-webui"),
    ({"histories": []}, "a chat of Character.AI"),
    ([{"name": "Ida", "mes": "Ho."}], "the messages of a chat"),
    (HEADER, "a SillyTavern chat"),
    ({"prompts": [], "prompt_order": []}, "a SillyTavern preset for chat completion"),
    ({"entries": {}}, "a SillyTavern world file"),
    ({"entries": [MILL]}, "a lorebook"),
    ({"name": "mill", "description": "A book of a mill.", "entries": [MILL]}, "a lorebook"),
    ({"name": "mill", "description": "", "entries": {}}, "a SillyTavern world file"),
    ({"spec": "lorebook_v3", "data": {}}, "a lorebook of Card V3"),
    (card_data(), "a character card"),
    ({"name": "Ida", "description": "Bees."}, "a character card"),
]
READERS = {
    "card": load_card,
    "book": lambda content: read_book(json_of_file(content, wanted="book", where="book")[0]),
    "preset": lambda content: read_preset(content, name="x"),
}


@pytest.mark.parametrize(("value", "name"), KINDS)
def test_error_for_a_refused_file_names_the_real_kind_of_the_file(value, name):
    kind = kind_of_value(value)
    assert kind is not None
    assert kind.name == name
    content = json.dumps(value).encode()
    assert kind_of_file(content) == kind
    for wanted, read in READERS.items():
        if kind.use != wanted:
            with pytest.raises(FormatError) as caught:
                read(content)
            assert f"this is {name}: " in caught.value.message
            assert caught.value.kind == wanted


def a_picture(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", crc32(name + data))
        for name, data in ((b"IHDR", b"\0" * 13), *chunks, (b"IEND", b""))
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (a_picture((b"tEXt", b"naidata\0e30=")), "a NovelAI lorebook in a picture"),
        (a_picture((b"tEXt", b"Chara\0e30=")), "a character card in a picture"),
        (a_picture(), "a picture without a card"),
        (b"\xff\xd8\xff\xe0", "a picture of another kind"),
        (b"GIF89a", "a picture of another kind"),
        (a_file(HEADER, a_line()), "a SillyTavern chat"),
        (a_file(a_line(), a_line()), "a SillyTavern chat"),
        (
            b"name: Ida\ngreeting: Ho.\ncontext: |\n  Bees.\n",
            "a character of text-generation-webui",
        ),
    ],
)
def test_kind_of_a_file_that_is_not_json_is_named(content, name):
    kind = kind_of_file(content)
    assert kind is not None
    assert kind.name == name
    with pytest.raises(FormatError, match=f"this is {name}"):
        READERS["book"](content)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"{}", b"[1]", b"\xff\xfe", b"a: b", b"[" * 9999, b"{\n}{"],
)
def test_kind_of_a_file_is_empty_when_unknown(content):
    assert kind_of_file(content) is None


@pytest.mark.parametrize("wanted", READERS)
@pytest.mark.parametrize("content", [b"", b" \r\n"])
def test_error_for_an_empty_file_says_that_the_file_is_empty(content, wanted):
    with pytest.raises(FormatError, match="the file is empty; download it again"):
        READERS[wanted](content)
