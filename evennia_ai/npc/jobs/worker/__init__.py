"""A worker: a process that does background jobs, without Evennia and without Twisted's reactor."""
