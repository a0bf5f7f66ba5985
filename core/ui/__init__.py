"""Streamlit helpers: cached reads, shared widgets, link state, theme."""
