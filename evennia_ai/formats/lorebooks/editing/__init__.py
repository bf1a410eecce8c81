"""What authors do with books: edits of a file's own JSON, and lints."""
