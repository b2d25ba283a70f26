"""The product end to end: a served proxy, real clients, hostile ones."""
