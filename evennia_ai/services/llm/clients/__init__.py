"""Models that can be asked: over HTTP (what they share, then each protocol), scripted, offline.

Which of them a profile means is said in `llm.profiles`; the game makes them in
`game.models.clients`.
"""
