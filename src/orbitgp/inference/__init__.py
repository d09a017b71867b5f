"""From a model and data to the posterior and its evidence."""
