"""Judged spans of documents."""
