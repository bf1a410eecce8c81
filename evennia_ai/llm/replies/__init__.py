"""Makes speech of what a model wrote, sentence by sentence, and answers of a form."""
