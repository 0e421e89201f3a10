"""Drawing of charts, graphs, schedules and runs, and the pages that contain them."""
