"""One file for each figure or table of the paper, on the public interface only."""
