"""What others offer for the same work, run as they are meant to be run."""
