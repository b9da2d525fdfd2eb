"""MariaDB behind the door of the sink jdbc. Nothing is imported here: workers load only parts of it."""
