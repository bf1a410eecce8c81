"""What is hidden from a viewer: lore, pages, whispers, and knowledge that NPCs found.

The locks here only restrict people who look at an NPC. They do not change what the NPC knows.
"""
