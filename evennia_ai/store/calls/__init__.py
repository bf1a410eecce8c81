"""Calls of models: what each took, and who is not to call any for now."""
