"""Independent, slow and obvious twins of what hikernel computes."""
