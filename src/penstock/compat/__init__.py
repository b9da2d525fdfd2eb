"""Other systems' names over Penstock's API, for people who bring their scripts along."""
