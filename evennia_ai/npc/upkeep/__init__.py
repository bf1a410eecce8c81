"""What is done for an NPC while nobody waits: histories are compacted, memories kept."""
