"""What other programs write: cards, lorebooks, presets, chats and scenario files."""
