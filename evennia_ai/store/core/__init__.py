"""The base of the store: snapshots, transactions, revisions and checks of input."""
