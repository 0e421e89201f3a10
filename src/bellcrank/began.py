"""When this process began to load the package: a file that was written later may not be what is in memory."""

import time

BEGAN = time.time_ns()
