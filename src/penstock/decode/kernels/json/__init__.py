"""JSON documents into columns: the strict meaning, and the fast way to it."""
