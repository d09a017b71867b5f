"""The processes that share a fit."""
