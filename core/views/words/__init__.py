"""Sentences shared by several pages: on the choice, on what to do first, on what judging could change."""
