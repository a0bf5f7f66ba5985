"""Documents that leave the product: built of plain blocks, written as one HTML file or as Markdown."""
