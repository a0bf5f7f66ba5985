"""Keeping a store sound: doctor, repair, backup, sweeping, migrations."""
