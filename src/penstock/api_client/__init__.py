"""The client of a server: its address, its tokens, requests and the errors in replies."""
