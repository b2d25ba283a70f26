"""The certificate: a second reader of every planned release, who trusts neither the binder nor the planner.

`dpsql.certify.check.certify` derives, from the algebra of a release and the verified schema alone, whose row each row
is, what one privacy unit can add to each measured vector, which noise that needs and what it costs. The ledger debits
what a `Certificate` says and nothing else. What cannot be derived is `Unproven`: an answer is lost, never privacy.

Never: code of `compiler.bind`, `compiler.split` or `compiler.plan`, a claim of the algebra taken for a fact (`one_row`,
`one_group`, `Col.row`, `Col.origin`, `Aggregation.unit`), I/O, or a rule that is not argued where it stands.
This module imports nothing of the compiler, so the ledger can demand the type without it.
"""

from dpsql.certify.certificate import Certificate, Unproven

__all__ = ["Certificate", "Unproven"]
