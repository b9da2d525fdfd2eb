"""Reading records: `Consumer` and its asyncio twin, and what they are made of."""
