"""Real-time drives: a system stepped by a native thread, with an operator in the loop."""
