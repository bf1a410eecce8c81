"""The command `lore`: books and their entries made, changed, shown and tried out by builders."""
