"""SillyTavern's presets for chat completion: read them, map them to components, write them back.

The code of this package only returns values. A preset is untrusted text, as a card is: without
grants, all of its text is placed inside the history with the role user.
"""
