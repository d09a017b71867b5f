"""What a fit tells the world while it goes on."""
