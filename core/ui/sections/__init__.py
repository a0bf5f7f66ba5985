"""Sections of pages, one file each: what they ask, read once, and show."""
