"""Tools for authors of lorebooks: edits of a book's JSON, comparisons and lints."""
