"""The prompt: messages, components, placement, budget, templates, trace.

Everything here is pure: no Django, Evennia or Twisted, no clock, disk, random source or setting.
The pipeline that uses these modules is `evennia_ai.engine.compose`.
"""
