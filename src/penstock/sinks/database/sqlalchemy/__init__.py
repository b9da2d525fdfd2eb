"""Any database that SQLAlchemy has a dialect for."""
