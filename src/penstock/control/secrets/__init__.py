"""Secrets of deployments: references stay references, values are encrypted with a key of the server."""
