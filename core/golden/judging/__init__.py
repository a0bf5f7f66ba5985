"""Judging by people: queues of passages, every keystroke kept at once, and what comes of them."""
