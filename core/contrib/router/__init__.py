"""A router learnt from several signs: its section, its command and the two files that leave."""
