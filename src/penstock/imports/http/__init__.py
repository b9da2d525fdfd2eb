"""The import `http`: a JSON API that is polled, page by page."""
