"""The data behind a workspace's pages: frames and results in and out; no blocks, sentences or charts."""
