"""All that draws: charts, pictures of graphs, schedules and runs, and the pages around them."""
