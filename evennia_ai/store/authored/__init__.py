"""What builders write: components, contexts, notes, cards, lorebooks."""
