"""Progress of a fit while it runs."""
