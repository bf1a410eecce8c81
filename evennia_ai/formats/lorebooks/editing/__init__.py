"""Editing tools for authors of books: edits of a file's JSON, and lints."""
