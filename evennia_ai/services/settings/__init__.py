"""The settings of a game. `game` declares each setting once; `conf` reads and checks them."""
