"""An ENGINE for `DATABASES`: Django's PostgreSQL for a process that never ends a request."""
