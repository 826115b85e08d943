"""The same tasks at the same privacy with tacit and with its peers: `python -m benchmarks peers`."""
