"""Diagnose how an embedder handles names and noise (clq_ra_nwg §4)."""
