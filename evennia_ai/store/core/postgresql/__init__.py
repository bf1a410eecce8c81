"""A database engine for Django's setting `DATABASES`: PostgreSQL with automatic reconnection."""
