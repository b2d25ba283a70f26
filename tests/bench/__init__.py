"""What the proxy adds to its backend's own time: `python -m tests.bench`."""
