"""Foreign data: strict JSON and YAML, and the limits that stop a hostile file first."""
