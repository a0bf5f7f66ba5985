"""Traces: Langfuse, LangSmith, OpenInference."""
