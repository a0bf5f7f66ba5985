"""Page What if: other limits, other measures, routing."""
