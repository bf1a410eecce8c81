"""What a viewer may not see of lorebooks, pages, whispers and knowledge that NPCs found.

These locks only restrict viewers. They do not change what an NPC knows.
"""
