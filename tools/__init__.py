"""What maintainers run by hand; no part of the product."""
