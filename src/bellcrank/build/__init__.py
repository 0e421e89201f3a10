"""From what is asked for to a kernel, a schedule or a sheet of equations: where both towers meet."""
