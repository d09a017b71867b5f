"""The sparse posterior q(u) and its algebra."""
