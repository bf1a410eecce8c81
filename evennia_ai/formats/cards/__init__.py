"""Character cards: read from files, turned into prompt components, reported on and exported.

Standard: Character Card V3. Cards of V2 and V1 are upgraded when they are exported.
"""
