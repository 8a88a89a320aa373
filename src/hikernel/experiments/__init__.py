"""Data with a known truth, the demonstration, and (in time) the experiments of the paper."""
