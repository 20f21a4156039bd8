"""Recording of whole episodes, and files for them: HDF5 and Minari datasets."""
