"""Context assembly: what of a wiki goes to the model that writes a page, in fifteen steps."""
