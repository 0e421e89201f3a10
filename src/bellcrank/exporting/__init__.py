"""What is simulated here, elsewhere: C packages, FMUs, functions for CasADi. `bc.export` is in call.py."""
