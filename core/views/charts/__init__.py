"""Charts that several pages draw."""
