"""Model servers as people run them, played on loopback."""
