"""Foreign data: parsers for strict JSON and YAML, with limits that stop hostile files early."""
