"""Data with a known truth, the demonstration, and the experiments of the paper."""
