"""Foreign data at the door: strict JSON and YAML, limits that a hostile file meets first."""
