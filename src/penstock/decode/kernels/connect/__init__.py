"""Keys and values of Connect's converters as columns."""
