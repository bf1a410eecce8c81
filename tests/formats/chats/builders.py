"""Builders of SillyTavern chat files for tests."""

import io
import json

from evennia_ai.formats.chats.chat import Chat, read_chat

HEADER = {
    "user_name": "Anna",
    "character_name": "Oren",
    "create_date": "2024-7-5@14h03m22s",
    "chat_metadata": {"note_prompt": "He has a cold.", "integrity": "4b5"},
}


def a_line(name: str = "Oren", mes: str = "Evening.", **fields) -> dict:
    """Return the line of a message by a character, or by the user if `is_user` is set."""
    return {
        "name": name,
        "is_user": False,
        "is_system": False,
        "send_date": "July 5, 2024 2:03pm",
        "mes": mes,
        "extra": {},
        **fields,
    }


def a_user_line(mes: str = "Good evening.", *, name: str = "Anna", **fields) -> dict:
    return a_line(name, mes, is_user=True, force_avatar="User Avatars/anna.png", **fields)


def a_file(*lines: dict) -> bytes:
    """Return a chat file with these lines, as SillyTavern writes it."""
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines).encode()


def a_chat(*lines: dict, **limits) -> Chat:
    """Return the chat that is read from a file with these lines."""
    return read(a_file(*lines), **limits)


def read(content: bytes, **options) -> Chat:
    return read_chat(io.BytesIO(content).readline, where="evening.jsonl", **options)
