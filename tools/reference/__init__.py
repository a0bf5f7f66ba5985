"""The documents' reference, generated from the code: each declaration is described there."""
