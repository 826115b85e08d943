"""tacit: learn together, say little, reveal less."""
