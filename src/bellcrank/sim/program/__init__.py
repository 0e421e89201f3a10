"""Programs of runs: the rate, fixed and adaptive steps, events, summaries, and checks of the step size."""
