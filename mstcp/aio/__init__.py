"""asyncio: readers and writers, and the functions that open and accept connections for them."""
