"""What the operator declares about one dataset: the policy file, read, checked, and compared with the backend."""
