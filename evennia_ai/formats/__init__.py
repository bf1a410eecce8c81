"""Readers and writers for files of other programs: cards, lorebooks, presets, chats, scenarios."""
