"""Vendors and local engines, one file each, behind one abstract method per kind."""
