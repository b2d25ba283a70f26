"""One client's state: settings, transaction, prepared statements, portals and cursors."""
