"""Tests of the web pages for builders."""
