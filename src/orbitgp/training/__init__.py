"""Moving a model's parameters; the settings alone need no torch."""
