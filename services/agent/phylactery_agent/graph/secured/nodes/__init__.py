"""The nodes of the secured graph, one file each, named as in the seeds."""
