"""The decision record: what was decided, from what, how surely; as data, JSON, Markdown and one HTML file."""
