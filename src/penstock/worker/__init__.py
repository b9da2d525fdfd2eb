"""A worker: runs deployments of the control plane in one process, with one Spark session."""
