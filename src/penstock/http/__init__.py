"""What components that speak HTTP share: requests, replies, credentials and their options."""
