"""Build steps from a requested quantity to a kernel, a schedule or printed equations."""
