"""Sentences that several pages say: of the choice, of what to do first, of what judging could turn."""
