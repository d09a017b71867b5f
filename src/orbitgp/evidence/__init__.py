"""Questions that the evidence answers: which transformations, how far, and how sure."""
