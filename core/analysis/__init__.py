"""What a workspace shows: frames and results in, frames and results out; no blocks, sentences or charts."""
