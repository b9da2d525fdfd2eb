"""The control plane: deployments in a database, leases on them, and what a worker has to do next."""
