"""Steppers: runs that advance by one action per call, for learning and control."""
