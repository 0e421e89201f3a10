"""Entry point of `python -m bellcrank`, the same as the command `bellcrank`."""

from bellcrank.cli import main

main()
