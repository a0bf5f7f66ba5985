"""A router learnt from several features: its section, its command and its two exported files."""
