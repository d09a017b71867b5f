"""Where data come from: files in common formats, and named sets with checksums."""
