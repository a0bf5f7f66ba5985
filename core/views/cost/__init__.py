"""Page Cost: what a stack costs and where the money goes."""
