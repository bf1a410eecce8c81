"""What the game tells browsers, and what it refuses from them."""
