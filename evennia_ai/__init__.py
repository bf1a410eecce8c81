"""Non-player characters for Evennia whose every prompt can be inspected.

Installed as a Django app (`INSTALLED_APPS += ["evennia_ai"]`) and one command set. This file
imports nothing, so that the pure rooms can be used without Django, Evennia or a running game.
"""
