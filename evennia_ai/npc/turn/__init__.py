"""The turn: from an event that is to be answered to what was said and done."""
