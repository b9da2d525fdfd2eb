"""The systems that a flow uses when it runs: clients that stay open from batch to batch."""
