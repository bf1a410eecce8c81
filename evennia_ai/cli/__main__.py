"""Run the command line with `python -m evennia_ai.cli`."""

from evennia_ai.cli import main

if __name__ == "__main__":
    main()
