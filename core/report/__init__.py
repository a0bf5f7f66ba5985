"""The decision record and the snapshot: one offline file each."""
