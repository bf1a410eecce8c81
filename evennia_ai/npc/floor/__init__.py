"""Which NPCs answer, and when: addressing, bids of several NPCs, the queue of turns, ticks."""
