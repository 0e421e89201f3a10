"""`python -m bellcrank` is `bellcrank`."""

from bellcrank.cli import main

main()
