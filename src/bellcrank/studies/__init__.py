"""Studies: many runs over varied values, through Dask, into a folder of Parquet files.

ranges -> points        values of each run
setup                   their meaning to the plant, checked before anything starts
runs                    runs as arguments of Simulator.run
identity                digests of everything that decides the numbers
chunk                   the runs of one file, in a worker
engine, folder          execution through Dask; files that are complete or absent
study                   bc.study and its result
sensitivity, page       Sobol indices; study.html
"""
