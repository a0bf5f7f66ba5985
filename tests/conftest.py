"""Settings for every test."""

from hypothesis import settings

# A time limit per example would fail on a busy machine for reasons that have nothing to do with the example.
settings.register_profile("clq", deadline=None)
settings.load_profile("clq")
