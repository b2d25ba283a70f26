"""The PostgreSQL wire protocol, version 3.0, without I/O: bytes in, frozen messages out, and back.

`messages` names them, `encode` and `decode` translate, `connection` decides what may come when, `auth` proves who is
there, `values` turns SQL values into text and binary forms. Nothing here opens a socket, waits, or knows a query.
"""
