"""Studies: many runs over varied values, through Dask, into a folder of Parquet files.

sampling_plans                    distributions, values of each run, and Sobol indices
study_setup                       their meaning to the plant, checked before anything starts; study.toml
run_batches                       runs as arguments of Simulator.run, and their random inputs
study_identity                    digests of everything that decides the numbers
dask_engine                       the runs of one file, in a worker; execution through Dask
study_folder                      files that are complete or absent
study                             bc.study and its result
study_page                        study.html
"""
