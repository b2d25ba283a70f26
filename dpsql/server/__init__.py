"""The network's edge: sockets, deadlines, threads. It decides nothing about SQL or privacy."""
