"""Speed, as ratios measured side by side in one run on one pinned core. `python -m bench` prints the table."""
