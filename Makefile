# make play  - install, start the demo game, play one exchange in it, and say how to log in
#              (WORKERS=2: use PostgreSQL, and two workers in addition to the game)
# make stop  - stop the demo game; nothing is lost
# make test  - the tests to run while you work; they take a few minutes
# make check - all tests, as in .ci/run: whole games, real services, another Python, fuzzing
# make docs  - build the documentation site in build/site (LINKS=1: check links to other sites)
# make lock  - write requirements/development.txt, with the newest versions for every Python
# PYTHON=... chooses the interpreter (3.11 or newer). EVENNIA_AI_TELNET_PORT=... and the other
# variables of server/ports.py choose the ports, on the command line or in the environment.

PYTHON ?= python3

.PHONY: play stop test check docs lock

play stop test check docs lock:
	@$(PYTHON) -m server $@
