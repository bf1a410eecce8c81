"""What all of the store stands on: snapshots, transactions, revisions, checks of what is given."""
