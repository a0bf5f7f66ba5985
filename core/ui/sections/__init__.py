"""Sections of pages, one file each: their form, read once, and their content."""
