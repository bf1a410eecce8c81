"""What was perceived is committed before anything else happens."""
