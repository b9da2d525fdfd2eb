"""Writing records: `Producer` and its asyncio twin, and what they are made of."""
