"""Start time of the package import: source files written later may differ from the code in memory."""

import time

IMPORT_TIME_NS = time.time_ns()
