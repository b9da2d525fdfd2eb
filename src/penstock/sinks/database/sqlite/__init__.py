"""SQLite for the sink database. Nothing is imported here: workers load only parts of it."""
