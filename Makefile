# make play  - install, start the demo game, play one exchange in it, say how to get in
#              (WORKERS=2: in PostgreSQL, with so many workers beside the game)
# make stop  - end it; nothing in it is lost
# make test  - what to run while working: a few minutes
# make check - everything, as .ci/run does: whole games, real services, another Python, fuzzing
# make docs  - build the documentation site into build/site (LINKS=1: check its links to others)
# make lock  - write requirements/development.txt, with the newest versions for every Python
# Choose the interpreter with PYTHON=... (3.11 or newer) and the ports with
# EVENNIA_AI_TELNET_PORT=... and the others of server/ports.py, here or in the environment.

PYTHON ?= python3

.PHONY: play stop test check docs lock

play stop test check docs lock:
	@$(PYTHON) -m server $@
