"""The command `ai`: what NPCs' minds are doing, and why their prompts were what they were."""
