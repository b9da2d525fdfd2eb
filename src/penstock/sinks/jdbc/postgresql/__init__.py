"""PostgreSQL behind the door of the sink jdbc. Nothing is imported here: workers load parts of it."""
