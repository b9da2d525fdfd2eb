"""The service: a REST API over the store of the control plane, and the processes that it supervises."""
