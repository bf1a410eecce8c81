"""Context assembly: choose wiki pages for the model that writes a page, in fifteen steps."""
