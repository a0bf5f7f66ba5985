"""Commands that evaluate: plan, run, resume, manifest, demo."""
