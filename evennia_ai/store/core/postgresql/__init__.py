"""An ENGINE for `DATABASES`: Django's PostgreSQL backend, which reconnects in any thread."""
