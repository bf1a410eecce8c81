"""Network classes for the Portal and the Server, checks of web requests, and the web pages."""
