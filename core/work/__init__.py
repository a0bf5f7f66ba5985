"""Work that is paid for or takes long, by kind: specification, plan, run, resume, storing results, words."""
