"""The decision record and the snapshot: one offline file each, from one dictionary and a template each."""
