"""Texts that people write: components, contexts, notes, cards, presets, lorebooks, personas."""
