"""Page Run: evaluations planned and started."""
