"""The trigger `http`: requests become records of `<flow>.in`, results come back in `<flow>.replies`."""
