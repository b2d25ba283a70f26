"""The public server: a real Postgres that holds public tables, empty shadows of the private ones, and roles.

`server` opens it and is what others call; `started` and `elsewhere` are its two kinds. `shadow` says what it holds,
`walls` what its users may not do, `groups` who sees what, `build` fills it, `load` copies the public tables into it.
Nothing private is ever in it: whoever could read all of it would learn the policy and the public tables.
"""
