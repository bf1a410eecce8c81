"""SillyTavern's presets for chat completion: read them, map them to components, write them back.

The code here has no side effects. A preset is untrusted text, as a card is: without grants, all of
its text is placed inside the history with the role user.
"""
