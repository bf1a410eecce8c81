"""`evennia-ai move`: copy a whole game from one database to another.

`moving` has the steps in their order. `tables` reads and writes rows, `progress` stores how far the
move is, `loose` removes and restores constraints during the copy, and `comparing` checks that both
databases are the same.
"""
