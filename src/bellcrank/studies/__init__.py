"""Studies: many runs over what varies, through Dask, into a folder of Parquet files.

ranges -> points        which values each run has
setup                   what they mean to the plant, checked before anything starts
runs                    runs as arguments of Simulator.run
identity                digests of everything that decides the numbers
chunk                   the runs of one file, in a worker
engine, folder          through Dask; into files that are whole or not there
study                   bc.study, and what it gives
sensitivity, page       Sobol indices; study.html
"""
