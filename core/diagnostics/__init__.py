"""Diagnose what an embedder makes of names and of noise (clq_ra_nwg §4)."""
