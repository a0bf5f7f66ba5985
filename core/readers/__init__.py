"""Readers: the value of the passages to the answer, by the number sent."""
