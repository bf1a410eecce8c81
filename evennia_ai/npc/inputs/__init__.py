"""What a prompt is made from: gathered once, with the facts of the moment."""
