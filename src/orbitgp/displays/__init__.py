"""Plots in the convention of scikit-learn's displays: values are stored, and drawn when asked."""
