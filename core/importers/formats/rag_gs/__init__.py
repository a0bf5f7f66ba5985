"""rag-gs."""
