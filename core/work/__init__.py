"""Work that is paid for or takes long, of each kind: specification, plan, run, resume, landing, words."""
