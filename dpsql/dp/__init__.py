"""Differential privacy in numbers only: mechanisms, sensitivities, privacy events, thresholds, noise, conversions.

Nothing here knows SQL, files, users or time. Exact integers and fractions wherever privacy depends on a number; floats
only where the result is rounded to the safe side or is merely shown.
"""
