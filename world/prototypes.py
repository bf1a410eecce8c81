"""Prototypes for `spawn`: an NPC with a mind, to which a builder can assign a card."""

AI_NPC = {
    "prototype_key": "ai_npc",
    "prototype_desc": "A person who answers when spoken to; assign a card with card/assign.",
    "prototype_tags": ["evennia_ai"],
    "typeclass": "evennia_ai.typeclasses.AINPC",
    "key": "a stranger",
    "locks": "call:false()",
}
