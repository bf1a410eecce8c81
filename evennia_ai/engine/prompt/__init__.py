"""The prompt: its messages and components, their places, the token budget, templates, the trace.

Everything here is pure: no Django, Evennia or Twisted, no clock, disk, random source or setting.
The pipeline that uses these modules is `evennia_ai.engine.compose`.
"""
