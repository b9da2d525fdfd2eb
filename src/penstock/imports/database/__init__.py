"""Tables and queries of databases into topics."""
