"""`python tests/golden --rewrite`: the golden files as the compiler has them now."""

from __future__ import annotations

import sys

from golden_cases import rewrite

if __name__ == "__main__":
    if sys.argv[1:] != ["--rewrite"]:
        sys.exit("usage: python tests/golden --rewrite")
    print("\n".join(rewrite()) or "nothing changed")
