"""The screen that a player sees before logging in."""

from django.conf import settings

CONNECTION_SCREEN = f"""
|c~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~|n
  |w{settings.SERVERNAME}|n
  {settings.GAME_SLOGAN}

  |wconnect <name> <password>|n   come ashore
  |wcreate <name> <password>|n    sign on as somebody new
  |whelp|n, |wlook|n, |wquit|n
|c~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~|n"""
