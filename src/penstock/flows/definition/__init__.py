"""The definition of a flow: models, and their reading with line numbers."""
