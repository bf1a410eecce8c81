"""Tests of the pages for builders."""
