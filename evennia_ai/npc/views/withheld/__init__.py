"""What may not be seen by somebody who looks, of lorebooks, pages, whispers and found knowledge.

A lock is for builders alone: what an NPC knows does not depend on it.
"""
