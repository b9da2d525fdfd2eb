"""How a flow runs: stages over the messages of a batch."""
