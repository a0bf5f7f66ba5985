"""Page Add results: the files offered, their meaning, their destination, and the button that writes."""
