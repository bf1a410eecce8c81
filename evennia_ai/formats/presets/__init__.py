"""SillyTavern's presets for chat completion: reading, what they give the prompt, writing them back.

Pure. A preset is untrusted text, as a card is: without grants all of it stands in the history as a
user's.
"""
