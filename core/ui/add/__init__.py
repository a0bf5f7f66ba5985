"""Page Add results: what is offered, what it means, where it goes, and the button that writes."""
